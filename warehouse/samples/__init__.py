"""Small data sets that ship with the project, one file a benchmark, in the shape of the benchmark's
own data.
"""

from pathlib import Path

FOLDER = Path(__file__).parent


def sample_path(benchmark: str) -> Path:
    """Return the sample of a benchmark."""
    return FOLDER / f"{benchmark}.jsonl"
