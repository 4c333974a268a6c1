"""The ranking while a run goes on: intervals that belong to the values as they are now, drawn as `aggregate` draws."""

from pathlib import Path

from flows.report_server.live import ranking_so_far
from tasks.aggregate import aggregate
from tasks.config.job import DataRevision
from tests.kit import REVISION, Rows, job_on, reading, together, written
from tests.tasks.compare.comparisons import judged, tasks_of

RUBRICS = {f"t{n}": [(4, "Accuracy"), (n + 1, "Risk"), (3, "Clarity")] for n in range(7)}


def answers(model: str, n_tasks: int) -> Rows:
    return judged({f"t{n}": [1, n % 2, n % 3 == 0] for n in range(n_tasks)}, model, rubrics=RUBRICS)


def test_intervals_of_values_that_have_none_stored_are_those_that_aggregate_would_store(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path / "data").looking_up(
        lambda: DataRevision(name="made up", revision=REVISION, splits=("finance",))
    )
    warehouse = written(job.warehouse, together(tasks_of(RUBRICS), answers("a", 7), answers("few", 2)))
    warehouse.publish()
    with warehouse.reader() as reader:
        before = ranking_so_far(job, reader)
    aggregate(job)
    with warehouse.reader() as reader:
        after = ranking_so_far(job, reader)

    assert [(row["model"], row["n_tasks"], row["n_tasks_wanted"]) for row in before] == [("a", 7, 7), ("few", 2, 7)]
    assert before[0]["ci_low"] is not None
    assert before[1]["ci_low"] is None
    assert before == after


def test_a_judge_with_two_templates_is_named_by_its_template_too(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path / "data").looking_up(
        lambda: DataRevision(name="made up", revision=REVISION, splits=("finance",))
    )
    again = judged({"t1": [1, 0, 0]}, "a", rubrics=RUBRICS, template_hash="another-template")
    parts = (tasks_of(RUBRICS), answers("a", 2), {"verdicts": again["verdicts"]})
    with reading(job.warehouse, *parts) as reader:
        rows = ranking_so_far(job, reader)

    assert [(row["judging"], row["n_tasks"]) for row in rows] == [
        ("a-judge template a-templa", 2), ("a-judge template another-", 1),
    ]  # fmt: skip
