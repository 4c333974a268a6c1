"""The order of tasks: what it depends on, and how it is spread over strata."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.stopping import block_ends, task_order

STRATA = {f"t{i}": "Finance" if i % 4 else "Legal" for i in range(100)}


def test_the_order_depends_on_the_seed_and_the_tasks_and_not_on_the_order_given() -> None:
    backwards = dict(reversed(STRATA.items()))
    assert task_order(STRATA, "1") == task_order(backwards, "1") != task_order(STRATA, "2")
    assert sorted(task_order(STRATA, "1")) == sorted(STRATA)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=80), st.integers(0, 5))
def test_every_beginning_holds_its_share_of_each_stratum(fields: list[str], seed: int) -> None:
    strata = {f"t{i}": field for i, field in enumerate(fields)}
    sizes, order = Counter(fields), task_order(strata, str(seed))
    for n in range(1, len(order) + 1):
        seen = Counter(strata[task] for task in order[:n])
        assert all(abs(seen[field] - n * size / len(order)) <= len(sizes) for field, size in sizes.items())


def test_each_task_is_equally_likely_to_come_first() -> None:
    first = Counter(task for seed in range(400) for task in task_order(STRATA, str(seed))[:20])
    assert len(first) == len(STRATA)
    assert max(first.values()) < 2 * 400 * 20 / 100


def test_the_last_block_holds_the_rest() -> None:
    assert block_ends(50, 20) == [20, 40, 50]
    assert block_ends(40, 20) == [20, 40]
    assert block_ends(7, 20) == [7]
    assert block_ends(0, 20) == []
