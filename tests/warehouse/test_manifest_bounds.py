"""A manifest of parts, which a restored backup may bring, names files of its own folder alone."""

from pathlib import Path

import pytest

from tests.builders import row
from warehouse import Warehouse, WarehouseError
from warehouse.files import write_sealed


@pytest.mark.parametrize("key", ["merged", "retired"])
@pytest.mark.parametrize("name", ["../../../kept.parquet", "/tmp/kept.parquet", "g0001/../../kept.parquet", "kept.txt"])
def test_a_manifest_that_names_files_elsewhere_is_refused(tmp_path: Path, key: str, name: str) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.write("runs", [row("runs")])
    named = {name: {"generation": 1, "replaces": [], "n_rows": 1} if key == "merged" else 0.0}
    write_sealed(warehouse.store.root / "runs" / "manifest.json", {"generation": 1, key: named})
    with pytest.raises(WarehouseError, match="is not a part in this folder"):
        warehouse.publish()


def test_a_manifest_that_is_nested_too_deeply_is_told_as_damaged(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    warehouse.write("runs", [row("runs")])
    (warehouse.store.root / "runs" / "manifest.json").write_text('{"merged":' + "[" * 100_000)
    with pytest.raises(WarehouseError, match="cannot be read"):
        warehouse.publish()
