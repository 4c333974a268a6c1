"""Results on real PRBench rows, where there are any beside the checkout."""

from pathlib import Path

import polars as pl
import pytest

from tasks.imports.results.importing import import_results
from tasks.ingest import ingest
from tests.builders import SHARED_DATA, job_on
from tests.tasks.imports.results.conftest import asked, notes_of
from tests.tasks.imports.results.made_files import published
from tests.tasks.imports.results.workload import answer

REAL = SHARED_DATA / "prbench" / "finance_hard.parquet"


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="no real rows beside the checkout")
def test_every_answer_is_cut_off_its_real_conversation(tmp_path: Path) -> None:
    job = job_on(REAL, tmp_path / "warehouse")
    ingest(job)
    file = published(tmp_path / "p.json", pl.read_parquet(REAL).to_dicts())

    said = notes_of(import_results(job, [file]))
    assert "600 responses and 10170 verdicts imported" in said
    found = asked(job, "select model, task_id, text from responses")
    assert 600 == len(found)
    assert [] == [row for row in found if row["text"] != answer(row["model"], row["task_id"])]
