"""The judges' page, against decisions that are counted one by one."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.report.content.edition import Edition, open_edition
from tasks.report.pages.corrections import DECISIONS
from tasks.report.pages.judges import JUDGES as PAGE
from tests.tasks.report.made_up.contenders import DRIFT_NIGHT, JUDGES, NIGHTS, PEOPLE
from tests.tasks.report.made_up.editions import check_sources, rows_of
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in PAGE.figures if figure != DECISIONS}  # has a test of its own
STRICT, MILD = JUDGES
Rows = list[dict[str, Any]]
Place = tuple[str, str]
"""(response, criterion)"""


@pytest.fixture(scope="module")
def edition(world_job: Job) -> Iterator[Edition]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_edition(world_job, reader)


@pytest.fixture(scope="module")
def stored(edition: Edition) -> Rows:
    """All verdicts of the revision, with what they stand under."""
    return edition.reader.rows(
        "select verdicts.*, criteria.category, criteria.weight, responses.model_config_hash from verdicts "
        "join criteria using (dataset_revision, task_id, criterion_id) join responses using (response_id) "
        f"where verdicts.dataset_revision = '{edition.revision}'"
    )


@pytest.fixture(scope="module")
def decisions(stored: Rows) -> dict[str, dict[Place, float]]:
    """Grader -> what it decided."""
    found: dict[str, dict[Place, float]] = defaultdict(dict)
    for each in stored:
        if each["value"] is not None:
            found[_grader(each)][each["response_id"], each["criterion_id"]] = each["value"]
    return found


def _grader(each: Mapping[str, Any]) -> str:
    return each["judge"] + (f"#{each['judge_trial']}" if each["judge_trial"] > 1 else "")


def _pairs(one: Mapping[Place, float], other: Mapping[Place, float]) -> list[tuple[float, float]]:
    return [(one[place], other[place]) for place in one.keys() & other.keys()]


def _kappa(pairs: list[tuple[float, float]]) -> float:
    n = len(pairs)
    alike = sum(a == b for a, b in pairs) / n
    ones, others = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(ones[value] * others[value] for value in ones) / n**2
    return (alike - chance) / (1 - chance)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, edition: Edition, tmp_path: Path) -> None:
    check_sources(FIGURES[name], edition, tmp_path)


def test_each_pair_agrees_as_often_as_its_decisions_do(
    edition: Edition, decisions: dict[str, dict[Place, float]]
) -> None:
    rows = [each for each in rows_of(FIGURES["judge_agreement"], edition) if not each["is_member"]]

    pairs = {(each["grader_a"], each["grader_b"]): each for each in rows}
    assert pairs.keys() == {
        (PEOPLE, STRICT), (PEOPLE, MILD), (MILD, STRICT), (STRICT, f"{STRICT}#2"),
    }  # fmt: skip
    for (one, other), found in pairs.items():
        both = _pairs(decisions[one], decisions[other])
        assert found["n"] == len(both)
        assert found["agreement"] == pytest.approx(sum(a == b for a, b in both) / len(both))
        assert found["kappa"] == pytest.approx(_kappa(both))
        assert found["kappa_ci_low"] < found["kappa"] < found["kappa_ci_high"]


def test_pairs_with_people_come_first_and_voters_beside_their_majority_last(edition: Edition) -> None:
    rows = rows_of(FIGURES["judge_agreement"], edition)

    order = [(each["is_member"], PEOPLE not in (each["grader_a"], each["grader_b"])) for each in rows]
    assert order == sorted(order)
    assert {"majority"} <= {
        grader for each in rows if each["is_member"] for grader in (each["grader_a"], each["grader_b"])
    }


def test_each_cell_counts_how_often_two_decisions_meet(
    edition: Edition, decisions: dict[str, dict[Place, float]]
) -> None:
    rows = rows_of(FIGURES["judge_confusion"], edition)

    word = {1.0: "met", 0.5: "partly met", 0.0: "not met"}
    for one, other in {(each["grader_a"], each["grader_b"]) for each in rows}:
        both = _pairs(decisions[one], decisions[other])
        found = {
            (each["says_a"], each["says_b"]): (each["n"], each["share"])
            for each in rows
            if (each["grader_a"], each["grader_b"]) == (one, other)
        }
        assert found == {
            (word[a], word[b]): (n, pytest.approx(n / len(both))) for (a, b), n in Counter(both).items()
        }  # fmt: skip


def test_under_a_category_only_its_criteria_are_compared(
    edition: Edition, stored: Rows, decisions: dict[str, dict[Place, float]]
) -> None:
    rows = [each for each in rows_of(FIGURES["judge_breakdowns"], edition) if each["breakdown"] == "category"]

    category = {(each["response_id"], each["criterion_id"]): each["category"] for each in stored}
    assert {each["label"] for each in rows} == set(category.values())
    for found in rows:
        of_label = {place for place in category if category[place] == found["label"]}
        one, other = (
            {place: value for place, value in decisions[found[side]].items() if place in of_label}
            for side in ("grader_a", "grader_b")
        )
        both = _pairs(one, other)
        assert found["n"] == len(both)
        assert found["is_few"] == (len(both) < 50)
        assert found["agreement"] == pytest.approx(sum(a == b for a, b in both) / len(both))


def test_leniency_is_how_much_more_often_a_grader_says_met(
    edition: Edition, decisions: dict[str, dict[Place, float]]
) -> None:
    rows = {each["grader"]: each for each in rows_of(FIGURES["judge_leniency"], edition)}

    first = {grader: of for grader, of in decisions.items() if "#" not in grader}
    assert rows.keys() == first.keys()
    for grader, own in first.items():
        beside = [
            (value, [other[place] for name, other in first.items() if name != grader and place in other])
            for place, value in own.items()
        ]
        differences = [value - sum(others) / len(others) for value, others in beside if others]
        assert rows[grader]["n"] == len(differences)
        assert rows[grader]["leniency"] == pytest.approx(sum(differences) / len(differences))


def test_a_judge_favours_a_model_by_what_it_gives_beyond_its_leniency(edition: Edition, stored: Rows) -> None:
    rows = {(each["grader"], each["model"]): each for each in rows_of(FIGURES["judge_favours"], edition)}

    by_task = _differences(_scores([each for each in _latest(edition, stored) if each["judge_trial"] == 1]))
    means = {key: sum(map(_mean, tasks.values())) / len(tasks) for key, tasks in by_task.items()}
    assert rows.keys() == means.keys()
    for (judge, model), mean in means.items():
        # All tasks count alike, so that a model with a few of them moves nobody.
        own = [value for key, tasks in by_task.items() if key[0] == judge for value in map(_mean, tasks.values())]
        assert rows[judge, model]["difference"] == pytest.approx(mean)
        assert rows[judge, model]["favour"] == pytest.approx(mean - _mean(own))
        assert rows[judge, model]["n_tasks"] == len(by_task[judge, model])


def _latest(edition: Edition, stored: Rows) -> Rows:
    """The verdicts on the answers of the edition."""
    entries = {(each["model"], each["model_config_hash"], each["vintage"]) for each in edition.entries}
    return [each for each in stored if (each["model"], each["model_config_hash"], each["vintage"]) in entries]


def _scores(verdicts: Rows) -> dict[tuple[str, str, str], dict[str, float]]:
    """(response, model, task) -> judge -> score, where all is decided."""
    given: dict[tuple[str, str, str], dict[str, Rows]] = defaultdict(lambda: defaultdict(list))
    for each in verdicts:
        given[each["response_id"], each["model"], each["task_id"]][each["judge"]].append(each)
    return {
        key: {
            judge: sum(each["weight"] * each["value"] for each in of) / sum(max(each["weight"], 0.0) for each in of)
            for judge, of in by_judge.items()
            if all(each["value"] is not None for each in of)
        }
        for key, by_judge in given.items()
    }


def _differences(
    scores: Mapping[tuple[str, str, str], Mapping[str, float]],
) -> dict[tuple[str, str], dict[str, list[float]]]:
    """(judge, model) -> task -> by how much the judge gave each answer more than the others did."""
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (_, model, task), by_judge in scores.items():
        for judge, score in by_judge.items():
            if others := [other for name, other in by_judge.items() if name != judge]:
                found[judge, model][task].append(score - _mean(others))
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def test_each_night_has_its_agreement_and_one_is_out_of_control(edition: Edition) -> None:
    rows = rows_of(FIGURES["judge_drift"], edition)

    first = {
        (each["response_id"], each["criterion_id"]): each["first_value"]
        for each in edition.reader.rows("from control_set")
    }
    again: dict[str, list[bool]] = defaultdict(list)
    for each in edition.reader.rows("from control_verdicts where value is not null"):
        again[each["judge_vintage"]].append(each["value"] == first[each["response_id"], each["criterion_id"]])
    assert [each["night"] for each in rows] == list(NIGHTS)
    for found in rows:
        assert found["grader"] == STRICT
        assert found["agreement"] == pytest.approx(sum(again[found["night"]]) / len(again[found["night"]]))
        assert found["is_out_of_control"] == (found["night"] == DRIFT_NIGHT)
    assert rows[0]["lower_limit"] is None  # There is no earlier night to expect anything from.
    assert all(each["agreement"] >= each["lower_limit"] for each in rows[1:] if not each["is_out_of_control"])


def test_failures_are_counted_by_cause_on_the_latest_answers_only(edition: Edition, stored: Rows) -> None:
    rows = rows_of(FIGURES["judge_failures"], edition)

    counts = Counter(
        (each["judge"] + (f" #{each['judge_trial']}" if each["judge_trial"] > 1 else ""), each["status"])
        for each in _latest(edition, stored)
        if each["judge"] != PEOPLE  # who label
    )
    assert {(each["grader"], each["status"]): each["n"] for each in rows} == counts
    assert sum(counts.values()) < len(stored), "the world has earlier nights, which are left out"
    for found in rows:
        total = sum(n for (grader, _), n in counts.items() if grader == found["grader"])
        assert found["share"] == pytest.approx(found["n"] / total)
        assert found["is_failure"] == (found["status"] not in ("met", "unmet", "partial"))
