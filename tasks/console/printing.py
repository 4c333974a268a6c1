"""Drawing on a terminal: Rich's own control codes reach it, and those in texts are made visible."""

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tasks.console import exact
from tasks.rules.text.characters import visible


class VisibleConsole(Console):
    """A console on standard output or standard error.

    It makes hidden characters visible (`visible`). Where the width of a text matters, do so before.
    """

    def __init__(self, *, stderr: bool = False, **options: Any) -> None:
        super().__init__(file=exact(sys.stderr if stderr else sys.stdout), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, with visible text."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
