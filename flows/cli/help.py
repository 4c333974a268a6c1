"""Help pages: options and commands under headings, and nothing truncated."""

import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from typing import Any

import click

OWN, SELECTION, PLACE, OUTPUT = "Options", "Selection", "Place", "Output"
_HEADINGS = (OWN, SELECTION, PLACE, OUTPUT)
_COMMANDS = "Commands"
_RANGE = re.compile(r"  \[(\d+<=?)?x[<>]=?\d+\]$|; (\d+<=?)?x[<>]=?\d+(?=\]$)")
"""What click adds to the text of a number; that 0 and negative numbers make no sense is obvious."""


class GroupedOption(click.Option):
    """An option that a command's help lists under the heading of its group."""

    def __init__(self, *arguments: Any, group: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class Command(click.Command):
    """A command whose docstring ends with examples, which its help shows last, below the options by group."""

    def __init__(self, *arguments: Any, help: str | None = None, **settings: Any) -> None:  # noqa: A002 - click's name
        text, _, lines = cleandoc(help or "").partition("\n\nExamples:\n")
        epilog = lines and f"\b\nExamples:\n{lines}"
        super().__init__(*arguments, **{"help": text, "epilog": epilog, **settings})

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their groups."""
        records = list(_records(self, ctx))
        for heading in _HEADINGS:
            of_group = [record for group, record in records if group == heading]
            if of_group:
                with formatter.section(heading):
                    formatter.write_dl(of_group)


class Group(Command, click.Group):
    """A group whose help shows its commands under headings, each with its first sentence in full."""

    def __init__(
        self, *arguments: Any, sections: Mapping[str, Sequence[click.Command]] | None = None, **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self._sections = dict(sections or {})
        for commands in self._sections.values():
            for command in commands:
                self.add_command(command)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, then the commands under theirs."""
        super().format_options(ctx, formatter)
        sections = self._sections or {_COMMANDS: tuple(self.commands.values())}
        width = max(len(command.name or "") for commands in sections.values() for command in commands)
        for heading, commands in sections.items():
            with formatter.section(heading):
                # Names padded to one width, so that the texts of all sections are aligned.
                formatter.write_dl([(f"{command.name:<{width}}", first_sentence(command)) for command in commands])


def _records(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each option's heading, name and text; `--help` is among the output options, if there are any."""
    options = command.get_params(ctx)
    of_help = OUTPUT if any(getattr(option, "group", OWN) == OUTPUT for option in options) else OWN
    for option in options:
        record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
        if record is not None:
            is_help = option is command.get_help_option(ctx)
            name, text = record
            yield of_help if is_help else getattr(option, "group", OWN), (name, _RANGE.sub("", text))


def first_sentence(command: click.Command) -> str:
    """What a command does, for a list of commands."""
    paragraph = " ".join((command.help or "").strip().split("\n\n")[0].split())
    return paragraph.split(". ")[0].removesuffix(".") + "."
