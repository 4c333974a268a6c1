"""The real graded rows of three models, against the independent checker of certificates and counts
of the raw files.
"""

import json
from collections import Counter

import pytest

from tasks.aggregate import aggregate
from tasks.certify.certifying import certify
from tasks.check import check
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tests.kit import SHARED_DATA, few_published, job_on, rows_in, values_in
from tests.tasks.certify.checker import check as checked
from tests.tasks.report.synthetic.resamples import few_resamples
from warehouse import Warehouse

FILES = [
    SHARED_DATA / "prbench" / name
    for name in (
        "finance_hard.parquet",
        "responses_finance_hard_3models.jsonl",
        "verdicts_finance_hard_3models.jsonl",
    )
]


@pytest.mark.slow
@pytest.mark.skipif(
    not all(file.is_file() for file in FILES),
    reason="real data are not beside the checkout",
)
def test_leaderboards_of_real_rows_have_the_figures_of_the_checker(tmp_path):
    tasks, responses, verdicts = FILES
    job = job_on(tasks, tmp_path / "warehouse")
    with few_published():
        ingest(job)
        import_responses(job, responses)
        import_verdicts(job, verdicts)
        check(job, ["ingest"])
    Warehouse(job.warehouse).database.unlink()
    with few_resamples(2_000):
        aggregate(job)
    certify(job, tmp_path / "real.zip")

    assert checked(tmp_path / "real.zip", resamples=2_000)[1] == []
    board = rows_in(job, "from leaderboard")
    assert len(board) == 6
    assert {row["n_tasks"] for row in board} == {95}
    assert {row["n_tasks_ranked"] for row in board} == {95}
    quarantine = rows_in(job, "from quarantine")
    assert [row["check_name"] for row in quarantine] == ["criteria_per_task"] * 7
    lines = verdicts.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    decisions = Counter((row["model"], float(row["criteria_met"])) for row in rows)
    assert Counter(values_in(job, "select model, value from verdicts")) == decisions
    assert decisions.total() == 4734
    assert len(rows_in(job, "from responses")) == 300
