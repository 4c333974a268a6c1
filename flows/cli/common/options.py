"""The options that every command shares."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.run.arguments import Asked

if TYPE_CHECKING:
    from tasks.config.settings import Job

Command = Callable[..., Any]
_POSITIVE = click.IntRange(min=1)
_PATH = click.Path(path_type=Path)


@dataclass(frozen=True)
class Context:
    """What the shared options say: the job, and how to talk."""

    asked: Asked
    as_json: bool
    is_verbose: bool

    @property
    def job(self) -> "Job":
        """The job of this command; the configuration is read here."""
        from flows.run.config import load_job

        return load_job(self.asked)


_OPTIONS = (
    click.option("--config", type=_PATH, help="Configuration file.  [default: prbench.yaml here, else embedded]"),
    click.option("--benchmark", metavar="NAME", help="Benchmark, instead of the configured one (see `benchmarks`)."),
    click.option("--split", "splits", multiple=True, metavar="NAME", help="Only this split (again for more)."),
    click.option("--model", "models", multiple=True, metavar="LABEL", help="Only this model (again for more)."),
    click.option("--judge", "judges", multiple=True, metavar="LABEL", help="Only this judge (again for more)."),
    click.option("--trials", type=_POSITIVE, metavar="N", help="Repetitions, instead of the configured number."),
    click.option("--limit", type=_POSITIVE, metavar="N", help="Want only the first N tasks."),
    click.option("--vintage", metavar="LABEL", help="Which sampling: `base`, or a label (leaderboards: `all`)."),
    click.option("--night", metavar="LABEL", help="Of that night: the vintage of models that are sampled nightly."),
    click.option("--warehouse", type=_PATH, metavar="DIR", help="Folder of the data.  [default: warehouse/data]"),
    click.option("--json", "as_json", is_flag=True, help="Machine-readable result on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="No progress on standard error."),
    click.option("-v", "--verbose", is_flag=True, help="Logs, and tracebacks of errors."),
)


def shared_options(command: Command) -> Command:
    """Give a command the shared options; it gets them as a `Context`, its first argument."""

    @wraps(command)
    def wrapped(
        config: Path | None, benchmark: str | None, splits: tuple[str, ...], models: tuple[str, ...],
        judges: tuple[str, ...], trials: int | None, limit: int | None, vintage: str | None, night: str | None,
        warehouse: Path | None, as_json: bool, quiet: bool, verbose: bool, max_usd: float | None = None,
        max_tokens: int | None = None, stop_at: str | None = None, tasks: tuple[str, ...] = (),
        trial_numbers: tuple[int, ...] = (), **own: Any,
    ) -> Any:  # fmt: skip
        asked = Asked(
            config, benchmark, splits, models, judges, trials, limit, vintage, warehouse, quiet, max_usd, max_tokens,
            night, stop_at, tasks, trial_numbers,
        )  # fmt: skip
        return command(Context(asked, as_json, verbose), **own)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def examples(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
