"""Who decided the verdicts of cascades, and why, on the page of judges."""

from pathlib import Path

from tasks.report.pages.corrections import DECISIONS
from tests.builders import admitted, criterion, response, verdict
from tests.tasks.report.made_up.editions import check_sources, edition_of, rows_of


def test_each_reason_is_counted_with_its_failures_and_an_unknown_cost_stays_unknown(tmp_path: Path) -> None:
    answer, asked = response("t1"), [criterion("t1", position, 5.0) for position in range(5)]
    decided = [
        verdict(answer, asked[0], 1.0, judge="careful", decided_by="cheap", cost_usd=0.1),
        verdict(answer, asked[1], 0.0, judge="careful", decided_by="cheap", cost_usd=0.2),
        verdict(answer, asked[2], 1.0, judge="careful", decided_by="strong", cost_usd=0.5,
                escalated_because=["weight", "disagreement"]),
        verdict(answer, asked[3], None, judge="careful", decided_by="strong", escalated_because=["weight"],
                status="refused"),
        verdict(answer, asked[4], 1.0, judge="careful plain"),
    ]  # fmt: skip
    edition = edition_of(tmp_path, admitted(["t1"]) | {"responses": [answer], "verdicts": decided})

    shown = {row["reason"]: row for row in rows_of(DECISIONS, edition)}

    assert {
        reason: (row["decided_by"], row["n"], row["n_failed"], row["cost_usd"]) for reason, row in shown.items()
    } == {
        "decided at once": ("cheap", 2, 0, 0.3),
        "weight": ("strong", 2, 1, None),
        "disagreement": ("strong", 1, 0, 0.5),
    }
    assert {reason: row["share"] for reason, row in shown.items()} == {
        "decided at once": 0.5, "weight": 0.5, "disagreement": 0.25,
    }  # fmt: skip
    check_sources(DECISIONS, edition, tmp_path / "site")
