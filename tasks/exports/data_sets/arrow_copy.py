"""A copy of Parquet files that `datasets.load_from_disk` opens: Arrow files, and what the library must know of them.

The library's `save_to_disk` would first write everything to its cache, and then once more. What is written here has the
same form: Arrow streams, `dataset_info.json` with the types of the columns, and `state.json` with the files.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.rules.identity import digest

_ROWS_AT_ONCE = 10_000


def write_arrow_copy(folder: Path, parquet_files: Sequence[Path], content: str, *, described: str, licence: str) -> int:
    """Copy the Parquet files of one table into Arrow files beside them, and return their size in bytes.

    Args:
        folder: the folder of the table.
        parquet_files: one or more files of one schema.
        content: what identifies the content; the library's fingerprint is made of it.
        described: what a row is.
        licence: the licence's name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features  # imports for seconds

    schema = pq.read_schema(parquet_files[0]).remove_metadata()
    features = Features.from_arrow_schema(schema)
    names = [f"data-{place:05d}-of-{len(parquet_files):05d}.arrow" for place in range(len(parquet_files))]
    for name, parquet in zip(names, parquet_files, strict=True):
        with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, features.arrow_schema) as stream:
            for batch in pq.ParquetFile(parquet).iter_batches(batch_size=_ROWS_AT_ONCE):
                stream.write_batch(batch.cast(features.arrow_schema))
    _write(folder / "dataset_info.json", {
        "citation": "", "description": described, "features": features.to_dict(), "homepage": "", "license": licence,
    })  # fmt: skip
    _write(folder / "state.json", {
        "_data_files": [{"filename": name} for name in names], "_fingerprint": digest(content)[:16],
        "_format_columns": None, "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False,
        "_split": None,
    })  # fmt: skip
    return sum((folder / name).stat().st_size for name in names)


def write_list_of_copies(folder: Path, names: Sequence[str]) -> None:
    """Write what makes the copies below a folder one `DatasetDict`."""
    _write(folder / "dataset_dict.json", {"splits": list(names)})


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
