"""The figures of the view `judge_drift`, against scikit-learn and plain counting."""

import random
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from tests.kit import Row, differing, row

VALUES = {
    0.0: "unmet",
    0.5: "partial",
    1.0: "met",
}
FAILED = ("provider_error", "lost")
NIGHTS = {
    "2026-11-01": 0.0,
    "2026-11-02": 0.1,
    "2026-11-03": 0.5,
    "2026-11-04": 1.0,
}
"""Night -> the probability that a decision changes."""


def member(set_id: str, number: int, value: float) -> Row:
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


def verdict_on(criterion: Row, night: str, value: float | None, failure: str) -> Row:
    """Return the verdict of a night on a member; `failure` is its status without a value."""
    columns = (
        "set_id",
        "response_id",
        "task_id",
        "criterion_id",
        "criterion_hash",
        "model",
        "judge",
    )
    return row(
        "control_verdicts",
        **{name: criterion[name] for name in columns},
        judge_vintage=night,
        status=failure if value is None else VALUES[value],
        value=value,
    )


def random_members(source: random.Random) -> list[Row]:
    """Return the members of three control sets."""
    sets = {
        "binary": (0.0, 1.0),
        "ternary": (0.0, 0.5, 1.0),
        "one": (1.0,),
    }
    return [
        member(set_id, number, source.choice(values))
        for set_id, values in sets.items()
        for number in range(40)
    ]


def random_verdicts(
    source: random.Random,
    members: Sequence[Row],
    night: str,
    change: float,
) -> list[Row]:
    """Return the verdicts of a night: equal or changed with a probability, failed, or missing."""
    verdicts = []
    for criterion in members:
        if source.random() < 0.95:
            value = criterion["first_value"]
            if source.random() < change:
                value = source.choice([None, *VALUES])
            failure = source.choice(FAILED)
            verdicts.append(verdict_on(criterion, night, value, failure))
    return verdicts


def expected_figures(members: Sequence[Row], verdicts: Sequence[Row]) -> Row:
    """Return the figures of a control set in a night, by counting and by scikit-learn."""
    first_values = {
        criterion["criterion_id"]: criterion["first_value"] for criterion in members
    }
    decided = [verdict for verdict in verdicts if verdict["value"] is not None]
    old_values = [first_values[verdict["criterion_id"]] for verdict in decided]
    new_values = [verdict["value"] for verdict in decided]
    old_words = [VALUES[value] for value in old_values]
    new_words = [VALUES[value] for value in new_values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kappa is undefined for a single label
        kappa = cohen_kappa_score(old_words, new_words, labels=list(VALUES.values()))
    statuses = Counter(verdict["status"] for verdict in verdicts)
    return {
        "n_members": 40,
        "n_decided": len(decided),
        "n_lost": statuses["lost"],
        "n_failed": statuses["provider_error"],
        "kappa": kappa,
        "agreement": accuracy_score(old_words, new_words),
        "met_share": fmean(new_values),
        "first_met_share": fmean(old_values),
    }


def rows_by_set(rows: Iterable[Row]) -> dict[str, list[Row]]:
    rows_of_set = defaultdict(list)
    for control_row in rows:
        rows_of_set[control_row["set_id"]].append(control_row)
    return rows_of_set


def test_agreement_and_kappa_are_those_of_the_first_and_the_new_decisions(published):
    source = random.Random(20261122)
    members = random_members(source)
    verdicts = []
    expected = {}
    for night, change in NIGHTS.items():
        verdicts_of_night = random_verdicts(source, members, night, change)
        verdicts += verdicts_of_night
        members_of_set = rows_by_set(members)
        for set_id, set_verdicts in rows_by_set(verdicts_of_night).items():
            expected[set_id, night] = expected_figures(
                members_of_set[set_id], set_verdicts
            )

    reader = published({"control_set": members, "control_verdicts": verdicts})

    figures = {
        (row["set_id"], row["night"]): row for row in reader.rows("from judge_drift")
    }
    assert len(figures) == 12
    assert differing(expected, figures) == []


def label_of(person: str, labelled_member: Row, value: float) -> Row:
    """Return the label of a person on a member of a control set."""
    columns = ("response_id", "task_id", "criterion_id", "criterion_hash", "model")
    return row(
        "verdicts",
        verdict_id=f"{person} {labelled_member['verdict_id']}",
        judge=person,
        source="imported",
        status=VALUES[value],
        value=value,
        **{name: labelled_member[name] for name in columns},
    )


def people_figures(published, probabilities: Sequence[float | None]) -> Row:
    """Return the agreement with people in a night. The first verdicts are met; eva labels three of
    them met and bo the second one unmet. Then the judge calls the first two unmet, fails on the
    third, and calls the fourth met, which has no label.
    """
    members = []
    for number, probability in enumerate(probabilities):
        members.append(member("binary", number, 1.0) | {"probability": probability})
    verdicts = []
    for control_member, value in zip(members, (0.0, 0.0, None, 1.0), strict=True):
        verdicts.append(verdict_on(control_member, "2026-11-01", value, "timeout"))
    labels = [label_of("eva", labelled, 1.0) for labelled in members[:3]]
    labels.append(label_of("bo", members[1], 0.0))
    tables = {
        "control_set": members,
        "control_verdicts": verdicts,
        "verdicts": labels,
        "labellers": [
            row("labellers", judge="eva", import_batch="b"),
            row("labellers", judge="bo", import_batch="b"),
        ],
    }
    [figures] = published(tables).rows(
        "select n_labelled, first_people_agreement, people_agreement, labels_represent"
        " from judge_drift"
    )
    return figures


def test_labels_show_agreement_with_people_on_these_items(published):
    figures = people_figures(published, [0.5, None, 0.5, None])

    assert figures == {
        "n_labelled": 2,
        "first_people_agreement": 0.75,
        "people_agreement": 0.25,
        "labels_represent": "these items only",
    }


def test_members_count_by_their_known_probabilities(published):
    figures = people_figures(published, [0.5, 0.25, 0.5, None])

    # The first stands for 2 verdicts, the second, on which people differ, for 4.
    assert figures["labels_represent"] == "sampled verdicts"
    assert figures["first_people_agreement"] == pytest.approx((2 + 4 / 2) / 6)
    assert figures["people_agreement"] == pytest.approx((0 + 4 / 2) / 6)


def test_without_labels_there_is_no_agreement_with_people(published):
    members = [member("binary", 0, 1.0)]
    verdicts = [verdict_on(members[0], "2026-11-01", 1.0, "")]

    reader = published({"control_set": members, "control_verdicts": verdicts})

    query = "select n_labelled, people_agreement, labels_represent from judge_drift"
    assert reader.rows(query) == [
        {"n_labelled": 0, "people_agreement": None, "labels_represent": None}
    ]


@pytest.mark.parametrize(
    ("n_decided", "cause", "method", "is_out_of_control"),
    [(38, "limit", "m", True), (37, None, None, False)],
)
def test_limits_are_shown_only_beside_the_counts_that_they_were_computed_with(
    published,
    n_decided,
    cause,
    method,
    is_out_of_control,
):
    members = [member("binary", number, 1.0) for number in range(40)]
    verdicts = [
        verdict_on(criterion, "2026-11-01", 1.0, "") for criterion in members[:38]
    ]
    limit = row(
        "control_limits",
        set_id="binary",
        night="2026-11-01",
        n_decided=n_decided,
        n_agreeing=38,
        method="m",
        cause="limit",
    )

    reader = published(
        {
            "control_set": members,
            "control_verdicts": verdicts,
            "control_limits": [limit],
        }
    )

    assert reader.rows(
        "select cause, method, is_out_of_control from judge_drift"
    ) == [{"cause": cause, "method": method, "is_out_of_control": is_out_of_control}]
