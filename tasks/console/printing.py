"""Drawing on a terminal: Rich's own control codes reach it, and those in texts are made visible."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from tasks.console import Tally, exact
from tasks.rules.text.characters import visible


class VisibleConsole(Console):
    """A console on standard output or standard error.

    It makes hidden characters visible (`visible`). Where the width of a text matters, do so before.
    """

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        super().__init__(file=exact(sys.stderr if stderr else sys.stdout), **options)

    def render(
        self,
        renderable: RenderableType,
        options: ConsoleOptions | None = None,
    ) -> Iterable[Segment]:
        """Yield the segments of a renderable, with visible text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _Counts(MofNCompleteColumn):
    """Finished and all units; nothing for a step, which has none."""

    def render(self, task: Task) -> Text:
        return Text() if task.total is None else super().render(task)


class Bars(Progress):
    """Progress on standard error, with a bar for each tally."""

    def __init__(self) -> None:
        columns = (*Progress.get_default_columns(), _Counts(), TimeElapsedColumn())
        super().__init__(
            *columns, TextColumn("{task.fields[failures]}"), console=VisibleConsole(stderr=True)
        )
        self._numbers: dict[int, TaskID] = {}

    def show(self, tally: Tally, failures: str) -> None:
        """Show the current state of a tally."""
        number = self._numbers.get(id(tally))
        if number is None:
            number = self.add_task(escape(visible(tally.name)), total=tally.total, failures="")
            self._numbers[id(tally)] = number
            self.tasks[-1].start_time = tally.begun_s
        self.update(number, completed=tally.done, failures=failures)

    def keep_counted(self) -> None:
        """Remove the rows of steps before the bars end, so that only counted work stays on the
        terminal.
        """
        for task in self.tasks:
            if task.total is None:
                self.remove_task(task.id)
        self.live.transient = not self.tasks
