"""Which missing calls a run that stops is expected to make."""

import numpy as np

from tasks.plan.estimate import Planned
from tasks.plan.stopping import ORDERS, _calls, _simulated
from tasks.rules.stopping import DIFFERENT, Rule
from tasks.run.missing_work import Compared, Comparison, Progress

ORDER = tuple(f"t{place:03}" for place in range(100))
CLEAR = {task: 0.3 + 0.01 * (place % 7) for place, task in enumerate(ORDER)}
UNCLEAR = {task: 0.2 * (-1) ** place for place, task in enumerate(ORDER)}


def progress(first: str, second: str, block: int = 0, decision: str = "open") -> Progress:
    a, b = (Compared(label, "a-hash", "base") for label in (first, second))
    return Progress(Comparison(a, b, Rule("different", 0.05, 0.02, (20, 40, 60, 80, 100)), ORDER), block, decision)


def test_only_the_missing_tasks_among_those_that_are_needed_are_called() -> None:
    needed, (compared,) = _simulated([progress("a", "b")], [CLEAR])
    assert compared.tasks.median == 20
    # Of the first 20 tasks, 15 are done.
    missing = [("a", task, 1) for task in ORDER[15:]]
    assert _calls(Planned("sample", "a", 85), missing, needed).calls.median == 5


def test_a_settled_comparison_needs_what_it_has_and_an_open_one_more_than_that() -> None:
    missing = [("a", task, 1) for task in ORDER[40:]]
    needed, (compared,) = _simulated([progress("a", "b", 2, DIFFERENT)], [UNCLEAR])
    assert (compared.tasks.median, compared.settled_share) == (40, 1)
    assert _calls(Planned("sample", "a", 60), missing, needed).calls.high == 0
    needed, (compared,) = _simulated([progress("a", "b", 2)], [CLEAR])
    assert compared.tasks.low == 60
    assert _calls(Planned("sample", "a", 60), missing, needed).calls.median == 20


def test_a_judge_is_called_for_what_each_model_needs() -> None:
    needed, _ = _simulated(
        [progress("a", "b", 5), progress("a", "c", 1, DIFFERENT), progress("b", "c", 1, DIFFERENT)], [UNCLEAR] * 3
    )
    # Model c needs 20 tasks with 3 criteria each, a and b all; a model that is not compared is judged in full.
    missing = [(label, task, 3) for label in ("a", "c", "alone") for task in ORDER]
    found = _calls(Planned("judge", "a-judge", 900), missing, needed)
    assert (found.calls.low, found.calls.median) == (660, 660)
    assert np.array_equal(needed.calls([]), np.zeros(ORDERS))
