"""A table as text: the columns that fit a width, the width of each, and its output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rich.cells import cell_len

from tasks.rules.text.characters import visible

if TYPE_CHECKING:
    from rich.table import Table

    from tasks.console.printing import VisibleConsole

GAP = 2
"""Number of characters between two columns."""
SEPARATOR = " · "
"""Between two values in a heading."""
ABSENT = "–"
"""The cell of a row without a value."""
_ABSENT_CELLS = {ABSENT, ""}
_READABLE_WIDTH = 16
"""A text column may join if it gets this width, or its own if that is less."""
_USUAL_WIDTH = 80
"""The least width of a terminal that shows all essential columns."""
_WITHOUT_LIMIT = 10**6
"""The width of a console that wraps nothing."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table as text.

    A number is right-aligned and never wrapped. Essential columns join first. Where width
    matters, the heading is the short one, if there is one, and wrapped between words.
    """

    name: str
    heading: str
    cells: Sequence[str]
    is_number: bool = False
    is_essential: bool = False
    short: str = ""

    @cached_property
    def width(self) -> int:
        """The width without wrapping of cells."""
        return max(map(cell_len, (*self.heading.split(), *self.cells)), default=1)

    @property
    def is_shared(self) -> bool:
        """True if all rows have the same value."""
        return len(set(self.cells)) == 1

    @property
    def is_absent(self) -> bool:
        """True if no row has a value."""
        return set(self.cells) <= _ABSENT_CELLS

    def labelled_cell(self, index: int) -> str:
        """Return the cell of a row with the heading before it."""
        return f"{self.heading}: {self.cells[index]}"

    @property
    def shortened(self) -> "TableColumn":
        """The column with its short heading."""
        return replace(self, heading=self.short or self.heading)

    @property
    def readable_width(self) -> int:
        """The width that the column needs if it is to join."""
        return self.width if self.is_number else min(self.width, _READABLE_WIDTH)


def one_line_text(text: str) -> str:
    """Return a text for a cell: visible, and in one line."""
    return visible(text.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))


def fitting(columns: Sequence[TableColumn], width: int) -> list[TableColumn]:
    """Return the columns that fit, in the order of `columns`, and at least one.

    Essential ones come first, and stay in any terminal of the usual width.
    """
    ranked = sorted(columns, key=lambda column: not column.is_essential)
    joined: list[TableColumn] = []
    table_width = -GAP
    for column in ranked:
        table_width += column.readable_width + GAP
        is_kept = column.is_essential and width >= _USUAL_WIDTH
        if joined and table_width > width and not is_kept:
            break
        joined.append(column)
    return [column for column in columns if column in joined]


def column_widths(columns: Sequence[TableColumn], width: int) -> list[int]:
    """Return the width of each column: the widest text columns are narrowed until the table
    fits.
    """
    room = width - GAP * (len(columns) - 1)
    limit = max(1, room)
    while limit > 1 and sum(_limited(column, limit) for column in columns) > room:
        limit -= 1
    return [_limited(column, limit) for column in columns]


def _limited(column: TableColumn, limit: int) -> int:
    width = column.width if column.is_number else min(column.width, limit)
    return max(1, width)


@dataclass(frozen=True)
class Layout:
    """What a table shows: its heading, columns and their widths, the indices of the rows of each
    group by the group's heading, and the headings of columns that do not fit.
    """

    heading: str
    columns: Sequence[TableColumn]
    widths: Sequence[int]
    groups: Mapping[str, Sequence[int]]
    hidden: Sequence[str] = ()


def layout(
    columns: Sequence[TableColumn],
    boards: Sequence[TableColumn],
    width: int | None,
) -> Layout:
    """Return the layout of a table with one row or more; `boards` are the columns by whose values
    rows are grouped, each group under a heading.

    Without a width, as in a pipe, it has the essential columns, or all if none is essential. With a
    width, it has those that fit, essential ones first; of the others, those without any value are
    left out, and those with the same value in all rows are in the heading, as far as they fit
    there.
    """
    columns = [column.shortened for column in columns]
    boards = [board for board in boards if not board.is_absent]
    parts = [board.labelled_cell(0) for board in boards if board.is_shared]
    boards = [board for board in boards if not board.is_shared]
    if width is None:
        essential = [column for column in columns if column.is_essential] or columns
        widths = [column.width for column in essential]
        return Layout(SEPARATOR.join(parts), essential, widths, _groups(boards, essential))
    hidden = []
    candidates = []
    for column in columns:
        if column.is_absent and not column.is_essential:
            continue
        # In a table of one row, all columns would be in the heading.
        if column.is_essential or not column.is_shared or len(column.cells) == 1:
            candidates.append(column)
        elif cell_len(SEPARATOR.join([*parts, column.labelled_cell(0)])) <= width:
            parts.append(column.labelled_cell(0))
        else:
            hidden.append(column.heading)
    visible_columns = fitting(candidates, width)
    hidden += [column.heading for column in candidates if column not in visible_columns]
    widths = column_widths(visible_columns, width)
    groups = _groups(boards, visible_columns)
    return Layout(SEPARATOR.join(parts), visible_columns, widths, groups, hidden)


def _groups(boards: Sequence[TableColumn], columns: Sequence[TableColumn]) -> dict[str, list[int]]:
    """Return the indices of the rows of each group, by its heading; one group without boards."""
    groups: dict[str, list[int]] = {}
    for index in range(len(columns[0].cells)):
        values = [
            board.labelled_cell(index)
            for board in boards
            if board.cells[index] not in _ABSENT_CELLS
        ]
        groups.setdefault(SEPARATOR.join(values), []).append(index)
    return groups or {"": []}


def print_table(
    columns: Sequence[TableColumn],
    boards: Sequence[TableColumn] = (),
    *,
    title: str = "",
    is_wide: bool = False,
    most_width: int | None = None,
    wide_option: str = "",
) -> None:
    """Print a table, on a terminal in its width (`layout`); wide, it has all columns in full.

    Everywhere it has at most `most_width` characters, if that is given. `wide_option` shows the
    columns that do not fit.
    """
    from rich.text import Text

    from tasks.console.printing import VisibleConsole

    if not columns:
        return
    output = VisibleConsole()
    limits = [most_width]
    if output.is_terminal and not is_wide:
        limits.append(output.width)
    width = min(filter(None, limits), default=None)
    if is_wide:
        widths = [max(column.width, cell_len(column.heading)) for column in columns]
        table_layout = Layout("", columns, widths, _groups((), columns))  # nothing is wrapped
    else:
        table_layout = layout(columns, boards, width)
    console = VisibleConsole(width=width or _WITHOUT_LIMIT)
    with console.capture() as capture:
        for line in filter(None, (title, table_layout.heading)):
            console.print(Text(visible(line), style="bold"))
        _print_groups(console, table_layout)
        if table_layout.hidden:
            hidden = ", ".join(table_layout.hidden)
            alternative = f" (or {wide_option})" if wide_option else ""
            console.print(Text(f"A wider terminal{alternative} also shows: {hidden}", style="dim"))
    lines = capture.get().removesuffix("\n").split("\n")
    output.file.write("".join(f"{line.rstrip()}\n" for line in lines))


def _print_groups(console: "VisibleConsole", table_layout: Layout) -> None:
    from rich.text import Text

    for number, (heading, indices) in enumerate(table_layout.groups.items()):
        if heading:
            console.print(Text(heading, style="bold"))
        console.print(_drawn(table_layout, indices, has_header=number == 0))


def _drawn(table_layout: Layout, indices: Sequence[int], *, has_header: bool) -> "Table":
    """Return a table of some rows, whose columns have the widths of the layout."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        header_style="bold",
        show_header=has_header,
    )
    for column, width in zip(table_layout.columns, table_layout.widths, strict=True):
        table.add_column(
            Text(column.heading),
            justify="right" if column.is_number else "left",
            overflow="fold",
            width=width,
        )
    for index in indices:
        table.add_row(*(Text(column.cells[index]) for column in table_layout.columns))
    return table
