"""Prompts that come in a file of their own, beside rows that hold the rubrics."""

from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from tasks.dataset.foreign_files import open_regular
from tasks.rules.errors import PipelineError

Row = Mapping[str, Any]
SUFFIX = ".tsv"


class PromptFileError(PipelineError):
    """A file of prompts cannot be read; the message names the file and the line."""


def read_prompts(path: Path) -> dict[str, str]:
    """The prompts of a file with a line for each: the task's id, a tab, the prompt as it stands (no quoting).

    Raises:
        PromptFileError: a line has no tab, or an id appears twice.
    """
    prompts: dict[str, str] = {}
    try:
        # Only line feeds end a line: a prompt may hold other characters that Python takes for line ends.
        with TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise PromptFileError(
            f"{path}: cannot be read ({error}); give a UTF-8 file of `id<TAB>prompt` lines"
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        task_id, tab, prompt = line.rstrip("\r").partition("\t")
        if not tab:
            raise PromptFileError(f"{path}:{number}: no tab between the id and the prompt; correct the line")
        if task_id in prompts:
            raise PromptFileError(f"{path}:{number}: id {task_id!r} appears twice; keep one of the lines")
        prompts[task_id] = prompt
    return prompts


def with_prompts(rows: Iterable[Row], prompts: Mapping[str, str], id_columns: Iterable[str]) -> Iterator[Row]:
    """Rows with the prompt that belongs to their id; a row that has one keeps it, one without stays without."""
    names = tuple(id_columns)
    for row in rows:
        found = next((prompts[row[name]] for name in names if row.get(name) in prompts), None)
        yield row if found is None or row.get("prompt") else {**row, "prompt": found}
