"""The stored verdicts of a cheap and a strong judge: failed and missing ones are counted."""

from tasks.cascade import stored_pair
from tests.kit import REVISION, admitted, criterion, few_published, response, verdict

VALUES = {
    ("cheap", 1): {0: 1.0, 1: None, 2: 0.0, 3: 1.0},
    ("cheap", 2): {0: 1.0, 1: 1.0, 3: 1.0},
    ("strong", 1): {0: 1.0, 1: 0.0, 2: 1.0, 3: None},
}
"""Judge and repetition -> the values by criterion; None: it failed."""


def test_criteria_that_a_judge_failed_on_or_skipped_are_counted(published):
    responses = [response("t")]
    criteria = [criterion("t", position, 1.0) for position in range(4)]
    verdicts = []
    for (judge, trial), values in VALUES.items():
        for position, value in values.items():
            columns = {"judge": judge, "judge_trial": trial}
            verdicts.append(
                verdict(responses[0], criteria[position], value, **columns)
            )
    tables = {"criteria": criteria, "responses": responses, "verdicts": verdicts}
    parameters = {
        "benchmark": "prbench",
        "dataset_revision": REVISION,
        "cheap": "cheap",
        "strong": "strong",
        "splits": [],
    }

    with few_published("intermediate.score_bounds"):
        pair = stored_pair(published(admitted(["t"]), tables), parameters)

    assert len(pair.paired.strong) == 3
    assert pair.n_first_failed == 1
    assert pair.n_strong_failed == 1
    assert pair.n_without_second == 1
