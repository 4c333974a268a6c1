"""The options that commands share, in three groups; each command takes those that have an effect there."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.help import OUTPUT, PLACE, SELECTION, GroupedOption
from flows.run.arguments import Arguments

if TYPE_CHECKING:
    from tasks.config import Job

Function = Callable[..., Any]
_POSITIVE = click.IntRange(min=1)
_PATH = click.Path(path_type=Path)

SHOWS, ACTS, RUNS = ("json", "verbose"), ("json", "quiet", "verbose"), ("json", "quiet", "verbose", "no-prefect")
"""Output options: of a command that shows something, that does something and reports on it, and that runs a flow."""
ANY_PLACE, WAREHOUSE = ("config", "warehouse", "benchmark"), ("config", "warehouse")
"""Place options: of a command about one benchmark, and of one about a whole warehouse."""
EVALUATED = ("split", "model", "judge", "trials", "limit", "vintage", "night")
"""Selection options of a command that samples and judges."""

_OPTIONS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "split": (SELECTION, ("--split", "splits"), {
        "multiple": True, "metavar": "NAME", "help": "Only this split (repeatable)."}),
    "model": (SELECTION, ("--model", "models"), {
        "multiple": True, "metavar": "LABEL", "help": "Only this model (repeatable)."}),
    "judge": (SELECTION, ("--judge", "judges"), {
        "multiple": True, "metavar": "LABEL", "help": "Only this judge (repeatable)."}),
    "task": (SELECTION, ("--task", "tasks"), {
        "multiple": True, "metavar": "ID", "help": "Only this task (repeatable)."}),
    "trial": (SELECTION, ("--trial", "trial_numbers"), {
        "type": _POSITIVE, "multiple": True, "metavar": "N", "help": "Only trial number N (repeatable)."}),
    "trials": (SELECTION, ("--trials",), {
        "type": _POSITIVE, "metavar": "N", "help": "Use trials 1 to N.  [default: as configured]"}),
    "limit": (SELECTION, ("--limit",), {
        "type": _POSITIVE, "metavar": "N", "help": "Use only the first N tasks."}),
    "vintage": (SELECTION, ("--vintage",), {
        "metavar": "LABEL",
        "help": "Label of the sampling to use (its vintage): `base`, or a night's date.  [default: base]"}),
    "night": (SELECTION, ("--night",), {
        "metavar": "LABEL",
        "help": "Vintage to use for models with `resample: nightly`, usually a night's date.  "
        "[default: same as --vintage]"}),
    "config": (PLACE, ("--config",), {
        "type": _PATH, "metavar": "FILE",
        "help": "Configuration file.  [default: prbench.yaml in this folder, else the embedded default: sample data "
        "and embedded model]"}),
    "warehouse": (PLACE, ("--warehouse",), {
        "type": _PATH, "metavar": "DIR",
        "help": "Folder with the data.  [default: `warehouse:` in the configuration, else $PRBENCH_WAREHOUSE, else "
        "warehouse/data beside the configuration file, or in this folder if there is none]"}),
    "benchmark": (PLACE, ("--benchmark",), {
        "metavar": "NAME", "help": "Benchmark to use.  [default: as configured]"}),
    "json": (OUTPUT, ("--json", "as_json"), {
        "is_flag": True, "help": "Write the result as JSON to standard output."}),
    "quiet": (OUTPUT, ("-q", "--quiet", "is_quiet"), {
        "is_flag": True, "help": "Show neither progress nor a summary; errors remain."}),
    "verbose": (OUTPUT, ("-v", "--verbose", "is_verbose"), {
        "is_flag": True, "help": "Show log messages, and the traceback of an error."}),
    "no-prefect": (OUTPUT, ("--no-prefect", "is_unrecorded"), {
        "is_flag": True, "help": "Do not record this run in Prefect."}),
}  # fmt: skip
_ARGUMENTS = {field.name for field in fields(Arguments)}


@dataclass(frozen=True)
class Context:
    """What the shared options say: the job, and how to report on it."""

    arguments: Arguments
    as_json: bool
    is_verbose: bool

    @cached_property
    def job(self) -> "Job":
        """The job of this command; the configuration is read here."""
        from flows.run.config import load_job

        return load_job(self.arguments)

    def stored_job(self, *, checked: Sequence[str] = ("split", "model", "judge", "vintage")) -> "Job":
        """The job of a command that only reads, on what is stored (see `tasks.run.on_stored_data`).

        `checked` are the options whose names must be known.
        """
        from tasks.compare import EVERY
        from tasks.run import on_stored_data

        given = self.arguments
        vintages = () if given.vintage in {None, EVERY} else (given.vintage,)
        named = {"split": given.splits, "model": given.models, "judge": given.judges, "vintage": vintages}
        return on_stored_data(self.job, {option: named[option] for option in checked})


def shared_options(
    *,
    selection: Sequence[str] = (),
    place: Sequence[str] = ANY_PLACE,
    output: Sequence[str] = ACTS,
    texts: Mapping[str, str] | None = None,
    metavars: Mapping[str, str] | None = None,
) -> Callable[[Function], Function]:
    """Give a command the shared options that it names; it gets them as a `Context`, its first argument.

    `texts` replaces the help of options whose meaning is special to this command, `metavars` the name of their value.
    """

    def decorate(command: Function) -> Function:
        @wraps(command)
        def wrapped(as_json: bool = False, is_verbose: bool = False, **given: Any) -> Any:
            arguments = Arguments(**{name: given.pop(name) for name in _ARGUMENTS & set(given)})
            return command(Context(arguments, as_json, is_verbose), **given)

        for name in reversed([*selection, *place, *output]):
            group, names, settings = _OPTIONS[name]
            special = {
                key: given[name] for key, given in (("help", texts), ("metavar", metavars)) if given and name in given
            }
            wrapped = click.option(*names, cls=GroupedOption, group=group, **{**settings, **special})(wrapped)
        return wrapped

    return decorate


def budget_options(command: Function) -> Function:
    """Give a command the options that limit what it may use: money, tokens, and time."""
    for option in (
        click.option("--stop-at", metavar="TIME",
                     help="Start no call after this time, such as 06:30 or 2026-11-22T06:30."),
        click.option("--max-tokens", type=_POSITIVE, metavar="N",
                     help="Start no call that could raise the run's tokens above N."),
        click.option("--max-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD",
                     help="Start no call that could raise the run's cost above this."),
    ):  # fmt: skip
        command = option(command)
    return command


def repair_options(command: Function) -> Function:
    """Give a command the options that say which failed or lost work is done again."""
    for option in (
        click.option("--replace-lost", is_flag=True, help="Call again for rows that were lost in damaged files."),
        click.option(
            "--retry-failed",
            is_flag=True,
            help="Also retry failures that are not retried by default: refused, truncated, context_length, "
            "redirected, too_large.",
        ),
    ):
        command = option(command)
    return command
