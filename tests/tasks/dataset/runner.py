"""Runs calls of `tasks.dataset.source` in a process with its own environment and prints how they
ended.

The libraries read their settings when they are imported, so each environment needs a new process.
`python -m tests.tasks.dataset.runner '[["load_split", "id", "revision", "split"], ...]'` prints a
JSON list of `{"value": ..., "error": ..., "cause": ...}`, one for each call.
"""

import json
import sys
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.config.settings import Dataset
from tasks.dataset import source


def rows_of_file(dataset_id: str, revision: str, file: str) -> list[Any]:
    """The rows of a data set that is one file of a repository."""
    dataset = Dataset(
        id=dataset_id,
        revision=revision,
        files={"only": file},
    )
    return list(
        source.open_source(dataset, load_benchmark("healthbench")).rows("only")
    )


def outcome(function: str, *arguments: str) -> dict[str, Any]:
    """Return the result of a call, or the text of its SourceError and the type of the error behind
    it.
    """
    value = None
    error = None
    cause = None
    try:
        if function == "rows_of_file":
            value = rows_of_file(*arguments)
        else:
            value = getattr(source, function)(*arguments)
    except source.SourceError as failure:
        error = str(failure)
        cause = type(failure.__cause__).__name__
    return {
        "value": value,
        "error": error,
        "cause": cause,
    }


if __name__ == "__main__":
    print(json.dumps([outcome(*call) for call in json.loads(sys.argv[1])]))
