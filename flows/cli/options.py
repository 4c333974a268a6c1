"""The options that commands share, by group; each command has those that affect it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property, partial, wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.run.arguments import Arguments
from tasks.console import working
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import is_blank

if TYPE_CHECKING:
    from tasks.config.job import Job

GENERAL = "Options"
SELECTION = "Selection"
LOCATION = "Place"
OUTPUT = "Output"


class GroupedOption(click.Option):
    """An option that a command's help lists under the heading of its group.

    Its `names` are click's, separated by spaces: the option, and the parameter if that has another
    name.
    """

    def __init__(
        self, group: str, names: str, metavar: str | None, text: str, **settings: Any
    ) -> None:
        super().__init__(names.split(), metavar=metavar, help=text, **settings)
        self.group = group


class Command(click.Command):
    """A command whose help lists options by group, then the examples of its docstring."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        docstring = cleandoc(settings.get("help") or "")
        text, _, examples = docstring.partition("\n\nExamples:\n")
        settings["help"] = text
        if examples:
            settings["epilog"] = f"\b\nExamples:\n{examples}"
        super().__init__(*arguments, **settings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        records: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in (GENERAL, SELECTION, LOCATION, OUTPUT)
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            # Arguments have a record too; they are described in the docstring.
            if record is not None and isinstance(parameter, click.Option):
                records[getattr(parameter, "group", GENERAL)].append(record)
        for heading, group_records in records.items():
            if group_records:
                with formatter.section(heading):
                    formatter.write_dl(group_records)


class Group(Command, click.Group):
    """A group whose help lists its commands under headings, each with its first sentence."""

    sections: Mapping[str, Sequence[click.Command]] | None = None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, then the commands under theirs."""
        super().format_options(ctx, formatter)
        # Names padded to one width, so that the texts of all sections are aligned.
        width = max(map(len, self.commands))
        sections = self.sections or {"Commands": tuple(self.commands.values())}
        for heading, commands in sections.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (f"{command.name:<{width}}", command.get_short_help_str(200))
                        for command in commands
                    ]
                )


Function = Callable[..., Any]
_POSITIVE = click.IntRange(min=1)


def _vintage(label: str) -> str:
    """Return the label of a vintage, which messages and tables must be able to show.

    Raises:
        UsageError: it is blank, as an unset variable of a shell is, or has hidden characters.
    """
    if is_blank(label) or not label.isprintable():
        raise UsageError(f"vintage {label!r}: is no label; write `base`, or a date as 2026-11-22")
    return label


PATH = click.Path(path_type=Path)

FORMAT_BY_ENDING = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".md": "markdown",
    ".txt": "table",
    ".xlsx": "xlsx",
}
FORMATS = ("table", "csv", "json", "jsonl", "parquet", "markdown", "xlsx")
BINARY = ("parquet", "xlsx")
"""The formats that a terminal cannot show."""

ANY_LOCATION = ("config", "warehouse", "benchmark")
"""Location options of a command about one benchmark."""
WAREHOUSE = ("config", "warehouse")
"""Location options of a command about a whole warehouse."""
EVALUATION_OPTIONS = ("split", "model", "judge", "trials", "limit", "vintage", "night")
"""Selection options of a command that samples and judges."""
CALL_OPTIONS = ("retry-failed", "replace-lost", "max-usd", "max-tokens", "stop-at")
"""Options of a command that calls models: the failed or lost work to redo, and its limits."""


def _flag(group: str, names: str, text: str) -> GroupedOption:
    return GroupedOption(group, names, None, text, is_flag=True)


_general_option = partial(GroupedOption, GENERAL)
_selection_option = partial(GroupedOption, SELECTION)
_several = partial(_selection_option, multiple=True)
_OPTIONS: dict[str, GroupedOption] = {
    "hard": _flag(
        GENERAL,
        "--hard is_hard",
        "Use your latest hard subset of each field instead of the splits.",
    ),
    "score": _general_option(
        "--score", "NAME", "Score to use.  [default: the benchmark's primary score]"
    ),
    "fail-if": _general_option(
        "--fail-if",
        "worse",
        "Exit code 3 if a score is significantly lower, 1 if something could not be compared.",
        type=click.Choice(["worse"]),
    ),
    "summary": _general_option(
        "--summary summary_file",
        "FILE",
        "Append the result as Markdown to this file, such as $GITHUB_STEP_SUMMARY.",
        type=click.File("a", encoding="utf-8", lazy=True),
    ),
    "as": _general_option("--as model", "LABEL", "Model of rows that name none."),
    "by": _general_option("--by judge", "LABEL", "Judge of rows that name none."),
    "skip-unknown": _flag(
        GENERAL, "--skip-unknown", "Skip rows whose task or criterion is not in the data set."
    ),
    "table": _general_option(
        "--table tables", "NAME", "Only this table or view (repeatable).", multiple=True
    ),
    "seed": _general_option(
        "--seed", "N", "Seed of the random sample.", type=int, default=0, show_default=True
    ),
    "retry-failed": _flag(
        GENERAL,
        "--retry-failed",
        "Also retry failures that are not retried by default: refused, truncated, context_length,"
        " redirected, too_large, unclear, and criteria of a group that were unreadable in two"
        " runs.",
    ),
    "replace-lost": _flag(
        GENERAL, "--replace-lost", "Call again for rows that were lost in damaged files."
    ),
    "max-usd": _general_option(
        "--max-usd",
        "USD",
        "Start no call that could raise the run's cost above this.",
        type=click.FloatRange(min=0, min_open=True),
    ),
    "max-tokens": _general_option(
        "--max-tokens",
        "N",
        "Start no call that could raise the run's tokens above N.",
        type=_POSITIVE,
    ),
    "stop-at": _general_option(
        "--stop-at", "TIME", "Start no call after this time, such as 06:30 or 2026-11-22T06:30."
    ),
    "split": _several("--split splits", "NAME", "Only this split (repeatable)."),
    "model": _several("--model named_models", "LABEL", "Only this model (repeatable)."),
    "judge": _several("--judge named_judges", "LABEL", "Only this judge (repeatable)."),
    "grader": _several("--judge graders", "LABEL", "Only pairs with this grader (repeatable)."),
    "task": _several("--task named_tasks", "ID", "Only this task (repeatable)."),
    "trial": _several(
        "--trial named_trials", "N", "Only trial number N (repeatable).", type=_POSITIVE
    ),
    "trials": _selection_option(
        "--trials", "N", "Use trials 1 to N.  [default: as configured]", type=_POSITIVE
    ),
    "limit": _selection_option(
        "--limit", "N", "Use only N tasks, drawn from the splits in turn.", type=_POSITIVE
    ),
    "vintage": _selection_option(
        "--vintage",
        "LABEL",
        "Label of the sampling to use (its vintage): `base`, or a night's date.  [default: base]",
        type=_vintage,
    ),
    "vintage-shown": _selection_option(
        "--vintage",
        "LABEL",
        "Only this vintage, or `all`.  [default: the current one of each model]",
        type=_vintage,
    ),
    "vintage-only": _selection_option("--vintage", "LABEL", "Only this vintage.", type=_vintage),
    "night": _selection_option(
        "--night",
        "LABEL",
        "Vintage to use for models with `resample: nightly`, usually a night's date.  [default:"
        " same as --vintage]",
        type=_vintage,
    ),
    "config": GroupedOption(
        LOCATION,
        "--config",
        "FILE",
        "Configuration file.  [default: prbench.yaml in this folder, else the embedded default:"
        " sample data and embedded model]",
        type=PATH,
    ),
    "warehouse": GroupedOption(
        LOCATION,
        "--warehouse",
        "DIR",
        "Folder with the data.  [default: `warehouse:` in the configuration, else"
        " $PRBENCH_WAREHOUSE, else warehouse/data beside the configuration file; without one"
        " warehouse/embedded, unless warehouse/data exists here]",
        type=PATH,
    ),
    "benchmark": GroupedOption(
        LOCATION, "--benchmark", "NAME", "Benchmark to use.  [default: as configured]"
    ),
    "format": GroupedOption(
        OUTPUT,
        "--format file_format",
        "FORMAT",
        f"Format of the result: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.  [default: by the"
        " ending of the file, else table]",
        type=click.Choice(FORMATS),
    ),
    "output": GroupedOption(
        OUTPUT,
        "-o --output",
        "FILE",
        "Write the result to this file.",
        type=click.Path(path_type=Path, dir_okay=False),
    ),
    "wide": _flag(OUTPUT, "--wide is_wide", "Show all columns of a table, with headings in full."),
    "json": _flag(OUTPUT, "--json as_json", "Write the result as JSON to standard output."),
    "quiet": _flag(
        OUTPUT, "-q --quiet is_quiet", "Show neither progress nor a summary; errors remain."
    ),
    "verbose": _flag(
        OUTPUT, "-v --verbose is_verbose", "Show log messages, and the traceback of an error."
    ),
    "no-prefect": _flag(OUTPUT, "--no-prefect is_unrecorded", "Do not record this run in Prefect."),
}


def number(
    names: str, default: int | None, text: str, *, least: int = 1
) -> Callable[[Function], Function]:
    """Return a decorator for a command's own option that is a whole number, at least `least`.

    `names` are click's, separated by spaces: the option, and the parameter of the function.
    """
    return click.option(
        *names.split(),
        help=text,
        type=click.IntRange(min=least),
        default=default,
        show_default=True,
        metavar="N",
    )


@dataclass(frozen=True)
class Context:
    """The values of the shared options: the job and the output.

    `file_format` is one of `FORMATS`; the result goes to the file `output`, or to standard output.
    A table `is_wide` if it has all columns, as in a file.
    """

    arguments: Arguments
    is_verbose: bool
    file_format: str = "table"
    output: Path | None = None
    is_wide: bool = False

    @property
    def as_json(self) -> bool:
        """True if the result is JSON."""
        return self.file_format == "json"

    @cached_property
    def job(self) -> "Job":
        """The job of this command; the configuration is read here."""
        from flows.run.config import load_job

        return load_job(self.arguments)

    def working(self) -> AbstractContextManager[None]:
        """Show that the command is at work until the block ends, also while libraries load."""
        name = click.get_current_context().command_path.removeprefix("prbench ")
        return working(name, is_quiet=self.arguments.is_quiet, is_command=True)

    def value_of(self, option: str) -> Any:
        """Return the value of a shared option by its name in `_OPTIONS`."""
        return getattr(self.arguments, str(_OPTIONS[option].name))

    def stored_job(self, **names_by_option: Sequence[str]) -> "Job":
        """Return the job of a command that only reads stored data (see
        `tasks.run.stored_data.on_stored_data`).

        The splits, models, judges and the vintage of the command line must be known names;
        `names_by_option` are checked instead of those of the same option.
        """
        from tasks.rules.identity import EVERY_VINTAGE
        from tasks.run.stored_data import on_stored_data

        vintage = self.arguments.vintage
        names = {
            "split": self.arguments.splits,
            "model": self.arguments.named_models,
            "judge": self.arguments.named_judges,
            "vintage": () if vintage in {None, EVERY_VINTAGE} else (vintage,),
        }
        return on_stored_data(self.job, names | names_by_option)


def chosen_format(as_json: bool, file_format: str | None, output: Path | None) -> str:
    """Return the format of a result: the named one, else that of the file's ending, else a table.

    A named format counts even if the file has the ending of another one.

    Raises:
        click.UsageError: two formats are named, the ending names none, or the format cannot be
            shown on a terminal.
    """
    if as_json:
        if file_format not in {None, "json"}:
            raise click.UsageError(
                f"--json and --format {file_format} cannot be combined; leave one out"
            )
        return "json"
    if file_format is None and output is not None:
        file_format = FORMAT_BY_ENDING.get(output.suffix.lower())
        if file_format is None:
            raise click.UsageError(
                f"-o {output}: the ending is none of {', '.join(FORMAT_BY_ENDING)}; name the"
                " --format"
            )
    if file_format in BINARY and output is None and sys.stdout.isatty():
        raise click.UsageError(
            f"--format {file_format}: cannot be shown on a terminal; write it to a file with -o or"
            " >"
        )
    return file_format or "table"


def command(
    *options: str,
    group: Any = None,
    location_options: Sequence[str] = ANY_LOCATION,
    output_options: Sequence[str] = ("json", "quiet", "verbose"),
    texts: Mapping[str, str] | None = None,
    **settings: Any,
) -> Callable[[Function], click.Command]:
    """Make a function a command with these shared options.

    Its first argument is a `Context` with them. An option of its own that is named like a field of
    `Arguments` (such as `vocabularies`) is there too, in `Context.arguments`; all others are
    keyword arguments. `group` is the command's group, if any. `texts` replaces the help of options
    that have a special meaning for this command. The `settings` are click's.
    """

    def decorate(function: Function) -> click.Command:
        @wraps(function)
        def call_with_context(
            as_json: bool = False,
            is_verbose: bool = False,
            file_format: str | None = None,
            output: Path | None = None,
            is_wide: bool = False,
            **values: Any,
        ) -> Any:
            result_format = chosen_format(as_json, file_format, output)
            shared_values = {}
            for field in fields(Arguments):
                if field.name in values:
                    shared_values[field.name] = values.pop(field.name)
            arguments = Arguments(**shared_values)
            is_wide = is_wide or output is not None
            context = Context(arguments, is_verbose, result_format, output, is_wide)
            return function(context, **values)

        settings.setdefault("cls", Command)
        result: click.Command = click.command(**settings)(call_with_context)
        for name in (*options, *location_options, *output_options):
            option = copy(_OPTIONS[name])
            if texts and name in texts:
                option.help = texts[name]
            result.params.append(option)
        if group is not None:
            group.add_command(result)
        return result

    return decorate


state_command = partial(command, output_options=("json", "verbose"))
"""`command` for one that reports a state."""
show_command = partial(command, output_options=("json", "wide", "format", "output", "verbose"))
"""`command` for one that shows figures or other rows."""
run_command = partial(command, output_options=("json", "quiet", "verbose", "no-prefect"))
"""`command` for one that is a run, with a row in `runs`."""
