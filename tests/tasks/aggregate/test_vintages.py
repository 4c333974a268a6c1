"""Several vintages of a model: the history of a score; `test_breakdowns` compares which one is the latest."""

from collections.abc import Callable

from tests.kit import Rows, admitted, at, criterion, response, verdict
from warehouse import Reader

BEGUN = {"base": 0.0, "2026-11-20": 100.0}


def test_a_change_below_zero_is_seen_in_the_history(published: Callable[[Rows], Reader]) -> None:
    fault = [criterion("t0", 0, 4.0), criterion("t0", 1, -1.0), criterion("t0", 2, -2.0)]
    decided = {"base": (0.0, 0.0, 1.0), "2026-11-20": (0.0, 1.0, 0.0)}
    rows: Rows = {**admitted(["t0"], n_criteria=3), "criteria": fault, "responses": [], "verdicts": []}
    for vintage, values in decided.items():
        answer = response("t0", vintage=vintage, created_at=at(BEGUN[vintage])) | {"response_id": vintage}
        rows["responses"].append(answer)
        rows["verdicts"] += [verdict(answer, c, value) for c, value in zip(fault, values, strict=True)]
    found = published(rows).rows(
        "select mean_score, change from score_history where is_primary order by first_response_at"
    )
    assert [(0.0, None), (0.0, 0.25)] == [tuple(row.values()) for row in found]
