"""The tasks of a run with `--limit`, and the end of such a run."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tasks.check import check
from tasks.config.job import DataRevision
from tasks.ingest import ingest
from tasks.run.missing_work import drawn_in_turn, wanted_tasks
from tests.kit import REVISION, admitted, good_row, job_on, reading, write_jsonl

SPLITS = st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), unique=True), max_size=4)


@given(SPLITS, st.integers(1, 20))
def test_a_limit_is_of_tasks_in_all_however_many_splits_share_them(
    splits: list[list[str]], limit: int
) -> None:
    drawn = drawn_in_turn(splits, limit)

    n_tasks = len(set().union(*splits))
    assert len(drawn) == min(limit, n_tasks)


@given(SPLITS, st.integers(1, 20))
def test_no_split_with_tasks_left_has_two_tasks_fewer_than_another_has_drawn(
    splits: list[list[str]], limit: int
) -> None:
    drawn = drawn_in_turn(splits, limit)

    least = limit // max(len(splits), 1)
    assert all(len(drawn.intersection(split)) >= min(least, len(split)) for split in splits)


@given(SPLITS, st.integers(1, 20))
def test_a_higher_limit_keeps_the_tasks_of_a_lower_one(splits: list[list[str]], limit: int) -> None:
    assert drawn_in_turn(splits, limit) <= drawn_in_turn(splits, limit + 1)


def test_the_first_tasks_of_each_split_are_drawn_in_its_own_order(tmp_path: Path) -> None:
    stored = admitted(["f1", "f2", "f3", "l1", "l2"], split="all")
    for split, task_ids in {
        "finance": "f1 f2 f3",
        "finance_hard": "f3 f1",
        "legal": "l1 l2",
    }.items():
        stored["split_members"] += admitted(task_ids.split(), split)["split_members"]
    data = DataRevision(
        name="a-name",
        revision=REVISION,
        splits=("finance", "finance_hard", "legal"),
    )
    job = job_on("sample", tmp_path).looking_up(lambda: data)

    with reading(tmp_path, stored) as reader:
        tasks = {
            limit: wanted_tasks(job.model_copy(update={"limit": limit}), reader).task_ids
            for limit in (1, 3, 4, 9)
        }

    assert tasks[1] == ("f1",)
    assert tasks[3] == ("f1", "f3", "l1")
    assert tasks[4] == ("f1", "f2", "f3", "l1")
    assert tasks[9] == ("f1", "f2", "f3", "l1", "l2")


def test_a_refused_task_puts_only_a_run_of_all_tasks_below_the_bar(tmp_path: Path) -> None:
    rows = [good_row("good"), good_row("bad", rubric=[])]
    job = job_on(write_jsonl(tmp_path / "finance.jsonl", rows), tmp_path / "data")
    ingest(job)

    of_all = check(job, ("ingest",))
    of_one = check(job.model_copy(update={"limit": 1}), ("ingest",))

    assert of_all.is_below_bar
    assert not of_one.is_below_bar
    assert of_one.warnings == of_all.warnings[:-1]
