"""The figures of the view `judge_drift`, against scikit-learn and plain counting."""

import random
import warnings
from typing import Any

from sklearn.metrics import accuracy_score, cohen_kappa_score

from tests.kit import Fill, differing, row

VALUES = {
    0.0: "unmet",
    0.5: "partial",
    1.0: "met",
}
FAILED = ("provider_error", "lost")


def member(set_id: str, number: int, value: float) -> dict[str, Any]:
    return row(
        "control_set",
        set_id=set_id,
        verdict_id=f"{set_id} {number}",
        response_id=f"r{number % 7}",
        task_id="t",
        criterion_id=f"c{number}",
        criterion_hash=f"h{number}",
        model="a",
        first_value=value,
        judge=f"judge of {set_id}",
    )


def decided(of: dict[str, Any], night: str, value: float | None, failed: str) -> dict[str, Any]:
    same = ("set_id", "response_id", "task_id", "criterion_id", "criterion_hash", "model", "judge")
    status = failed if value is None else VALUES[value]
    given = {name: of[name] for name in same}
    return row(
        "control_verdicts",
        **given,
        judge_vintage=night,
        status=status,
        value=value,
    )


def rows_shown(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Members of three control sets, and their verdicts in four nights: equal or different, failed,
    or missing.
    """
    source = random.Random(seed)
    members = [
        member(set_id, number, source.choice(values))
        for set_id, values in {
            "binary": (0.0, 1.0),
            "ternary": (0.0, 0.5, 1.0),
            "one": (1.0,),
        }.items()
        for number in range(40)
    ]
    verdicts = [
        decided(each, f"2026-11-0{night}", value, source.choice(FAILED))
        for night, unsure in enumerate((0.0, 0.1, 0.5, 1.0), start=1)
        for each in members
        if source.random() < 0.95
        for value in [
            each["first_value"] if source.random() >= unsure else source.choice([None, *VALUES])
        ]
    ]
    return members, verdicts


def test_agreement_and_kappa_are_those_of_the_first_and_the_new_decisions(published: Fill) -> None:
    members, verdicts = rows_shown(seed=20261122)
    first = {(each["set_id"], each["criterion_id"]): each["first_value"] for each in members}
    figures = published({"control_set": members, "control_verdicts": verdicts}).rows(
        "from judge_drift"
    )

    assert len(figures) == 12
    wanted = {}
    for each in figures:
        tonight = [
            v
            for v in verdicts
            if (v["set_id"], v["judge_vintage"]) == (each["set_id"], each["night"])
        ]
        pairs = [
            (first[v["set_id"], v["criterion_id"]], v["value"])
            for v in tonight
            if v["value"] is not None
        ]
        old, new = zip(*pairs, strict=True)
        as_words = [VALUES[value] for value in old], [VALUES[value] for value in new]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # kappa is undefined for a single label
            kappa = cohen_kappa_score(*as_words, labels=list(VALUES.values()))
        lost, failed = (
            sum(v["status"] == status for v in tonight) for status in ("lost", "provider_error")
        )
        wanted[each["set_id"], each["night"]] = {
            "n_members": 40,
            "n_decided": len(pairs),
            "n_lost": lost,
            "n_failed": failed,
            "kappa": kappa,
            "agreement": accuracy_score(*as_words),
            "met_share": sum(new) / len(new),
            "first_met_share": sum(old) / len(old),
        }
    assert differing(wanted, {(each["set_id"], each["night"]): each for each in figures}) == []


def test_limits_are_shown_only_beside_the_counts_that_they_were_worked_out_with(
    published: Fill,
) -> None:
    members, verdicts = rows_shown(seed=1)
    tonight = [v for v in verdicts if (v["set_id"], v["judge_vintage"]) == ("binary", "2026-11-01")]
    n = sum(v["value"] is not None for v in tonight)
    known = {
        "set_id": "binary",
        "night": "2026-11-01",
        "n_agreeing": n,
        "method": "m",
        "cause": "limit",
    }
    right, stale = (row("control_limits", n_decided=count, **known) for count in (n, n - 1))
    shown = (
        "select cause, method, is_out_of_control from judge_drift where set_id = 'binary' and night"
        " = '2026-11-01'"
    )

    stored = {"control_set": members, "control_verdicts": tonight}
    reader = published(stored, {"control_limits": [right]})
    assert reader.rows(shown) == [
        {
            "cause": "limit",
            "method": "m",
            "is_out_of_control": True,
        }
    ]
    reader = published(stored, {"control_limits": [stale]})
    assert reader.rows(shown) == [
        {
            "cause": None,
            "method": None,
            "is_out_of_control": False,
        }
    ]
