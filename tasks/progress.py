"""Telling people how far long work has come: a bar on a terminal, a line now and then elsewhere, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LINE_EVERY_S = 20.0
Advance = Callable[[int, bool], None]
"""Called with (how many more are finished, whether they succeeded)."""


@contextmanager
def progress(what: str, total: int, *, is_quiet: bool = False) -> Iterator[Advance]:
    """Show the progress of `total` units of work; the block gets a function to advance it."""
    if is_quiet or total == 0:
        yield lambda count, succeeded: None
    elif sys.stderr.isatty():
        with _bar(what, total) as advance:
            yield advance
    else:
        yield _lines(what, total)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), TextColumn("{task.fields[failures]}"),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task(what, total=total, failures="")
        failed = 0

        def advance(count: int, succeeded: bool) -> None:
            nonlocal failed
            failed += 0 if succeeded else count
            bars.update(task, advance=count, failures=f"{failed} failed" if failed else "")

        yield advance


def _lines(what: str, total: int) -> Advance:
    done, failed, said_at = 0, 0, time.monotonic()

    def advance(count: int, succeeded: bool) -> None:
        nonlocal done, failed, said_at
        done += count
        failed += 0 if succeeded else count
        if done >= total or time.monotonic() - said_at > _LINE_EVERY_S:
            said_at = time.monotonic()
            say(f"{what}: {done} of {total}" + (f", {failed} failed" if failed else ""))

    return advance


def say(line: str) -> None:
    """A line for people, on standard error."""
    print(line, file=sys.stderr, flush=True)
