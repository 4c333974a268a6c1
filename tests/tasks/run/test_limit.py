"""The tasks of a run with `--limit`, and the end of such a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.check import check
from tasks.config.job import DataRevision
from tasks.ingest import ingest
from tasks.run.missing_work import drawn_in_turn, wanted_tasks
from tests.kit import REVISION, admitted, good_row, job_on, reading, write_jsonl

SPLITS = st.lists(
    st.lists(st.sampled_from("abcdefghijklmnop"), unique=True), max_size=4
)


@given(SPLITS, st.integers(1, 20))
def test_a_limit_is_of_tasks_in_all_however_many_splits_share_them(splits, limit):
    n_tasks = len(set().union(*splits))

    assert len(drawn_in_turn(splits, limit)) == min(limit, n_tasks)


@given(SPLITS, st.integers(1, 20))
def test_no_split_with_tasks_left_has_two_tasks_fewer_than_another_has_drawn(
    splits,
    limit,
):
    task_ids = drawn_in_turn(splits, limit)

    for split in splits:
        n_drawn = len(task_ids.intersection(split))
        assert n_drawn >= min(limit // len(splits), len(split))


@given(SPLITS, st.integers(1, 20))
def test_a_higher_limit_keeps_the_tasks_of_a_lower_one(splits, limit):
    assert drawn_in_turn(splits, limit) <= drawn_in_turn(splits, limit + 1)


SPLIT_MEMBERS = {
    "finance": ["f1", "f2", "f3"],
    "finance_hard": ["f3", "f1"],
    "legal": ["l1", "l2"],
}


@pytest.mark.usefixtures("without_scores")
@pytest.mark.parametrize(
    ("limit", "task_ids"),
    [
        (1, ("f1",)),
        (3, ("f1", "f3", "l1")),
        (4, ("f1", "f2", "f3", "l1")),
        (9, ("f1", "f2", "f3", "l1", "l2")),
    ],
)
def test_the_first_tasks_of_each_split_are_drawn_in_its_own_order(
    limit,
    task_ids,
    tmp_path,
):
    rows = admitted(["f1", "f2", "f3", "l1", "l2"], split="all")
    for split, members in SPLIT_MEMBERS.items():
        rows["split_members"] += admitted(members, split)["split_members"]
    data = DataRevision(name="a-name", revision=REVISION, splits=tuple(SPLIT_MEMBERS))
    job = job_on("sample", tmp_path).looking_up(lambda: data)

    with reading(tmp_path, rows) as reader:
        job_tasks = wanted_tasks(job.model_copy(update={"limit": limit}), reader)

    assert job_tasks.task_ids == task_ids


@pytest.mark.usefixtures("without_scores")
def test_a_refused_task_puts_only_a_run_of_all_tasks_below_the_bar(tmp_path):
    rows = [good_row("good"), good_row("bad", rubric=[])]
    job = job_on(write_jsonl(tmp_path / "finance.jsonl", rows), tmp_path / "data")
    ingest(job)

    full_report = check(job, ("ingest",))
    limited_report = check(job.model_copy(update={"limit": 1}), ("ingest",))

    assert full_report.is_below_bar
    assert not limited_report.is_below_bar
    # Only a run of all tasks advises how to accept the refused ones.
    assert limited_report.warnings == full_report.warnings[:-1]
