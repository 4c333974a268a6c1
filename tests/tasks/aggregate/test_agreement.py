"""Agreement of made-up graders, against scikit-learn and against decisions counted one by one."""

import itertools
import statistics
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score

from tests.kit import Fill, Rows, aggregated, combined, differing, row, rows_in
from tests.tasks.aggregate.world import MAJORITIES, REFUSED, graded_world, refused
from tests.tasks.compare.comparisons import judged, tasks_of
from tests.tasks.rules.agreement_oracle import alpha_by_pairs
from warehouse import Reader

AS_BINARY = "tern (as binary)"
"""The ternary judge, read as binary."""
MEMBERS = {
    "majority": ("a-judge", "judge-b", "tern"),
    "a-judge (majority of trials)": ("a-judge", "a-judge#2", "a-judge#3"),
    **MAJORITIES,
}
"""Majority -> its members. Some grade in binary, so the ternary judge is read as binary. Two trials
make none.
"""
SETS = {
    "all graders": ("a-judge", "judge-b", "people", AS_BINARY),
    "a-judge (trials)": ("a-judge", "a-judge#2", "a-judge#3"),
    "judge-b (trials)": ("judge-b", "judge-b#2"),
    **{
        name: tuple(AS_BINARY if each == "tern" else each for each in of)
        for name, of in MAJORITIES.items()
    },
}
GRADERS = ("a-judge", "judge-b", "people", "tern", AS_BINARY, *MEMBERS)
_TWO_STEPS = sorted(
    {*GRADERS} - {"tern"}
)  # ternary graders are compared with ternary ones, binary with binary
_TRIALS = (SETS["a-judge (trials)"], SETS["judge-b (trials)"])
PAIRS = {pair for names in (_TWO_STEPS, *_TRIALS) for pair in itertools.combinations(names, 2)}
CellKey = tuple[str, str]
"""(response id, criterion id)"""
Figure = tuple[str, str, str, str]
"""(one grader or set, the other, breakdown, label)"""
Table = dict[Figure, dict[str, Any]]
Wanted = dict[Figure, tuple[list[int], list[int], list[str]]]
"""The decisions of both graders, and the task of each pair of decisions."""


class Graded:
    """The decisions that count of every grader, and their labels."""

    def __init__(self, world: Rows) -> None:
        fields = {
            each["task_id"]: each["field"]
            for each in world["task_rows"]
            if each["task_id"] != REFUSED
        }
        criteria = {
            (each["criterion_id"], each["content_hash"]): each for each in world["criteria"]
        }
        self.decisions: dict[str, dict[CellKey, float]] = defaultdict(dict)
        self.labels: dict[CellKey, dict[str, str]] = {}
        self.task_of: dict[CellKey, str] = {}
        for each in world["verdicts"]:
            of_criterion = criteria.get((each["criterion_id"], each["criterion_hash"]))
            if of_criterion and each["value"] is not None and each["task_id"] in fields:
                cell = (each["response_id"], each["criterion_id"])
                grader = each["judge"] + (
                    f"#{each['judge_trial']}" if each["judge_trial"] > 1 else ""
                )
                self.decisions[grader][cell] = each["value"]
                self.task_of[cell] = each["task_id"]
                self.labels[cell] = {
                    "category": of_criterion["category"] or "(none)",
                    "severity": of_criterion["severity"],
                    "field": fields[each["task_id"]],
                    "model": each["model"],
                    "all": "",
                }
        self.decisions[AS_BINARY] = {
            cell: float(value == 1) for cell, value in self.decisions["tern"].items()
        }
        for name, members in MEMBERS.items():
            voices = [
                self.decisions.get(AS_BINARY if each == "tern" else each, {}) for each in members
            ]
            for cell in self.task_of:
                for value, n in Counter(voice[cell] for voice in voices if cell in voice).items():
                    if n > len(members) / 2:
                        self.decisions[name][cell] = value

    def breakdowns(self) -> list[tuple[str, str]]:
        return sorted({cell for labels in self.labels.values() for cell in labels.items()})

    def shared(
        self, names: tuple[str, ...], breakdown: str, label: str
    ) -> dict[CellKey, list[float]]:
        """Return the graders' decisions on criteria that at least two of them decided."""
        decided = [self.decisions.get(name, {}) for name in names]
        chosen = [cell for cell, labels in self.labels.items() if labels[breakdown] == label]
        cells = {
            cell: [of_grader[cell] for of_grader in decided if cell in of_grader] for cell in chosen
        }
        return {cell: values for cell, values in cells.items() if len(values) >= 2}


@pytest.fixture(scope="module")
def graded(world: Rows) -> Graded:
    return Graded(world)


@pytest.fixture(scope="module")
def figures(reader: Reader) -> Table:
    rows = reader.rows("from intermediate.agreement_figures where breakdown <> 'length'")
    result = {
        (each["grader_a"], each["grader_b"], each["breakdown"], each["label"]): each
        for each in rows
    }
    assert len(result) == len(rows)
    return result


@pytest.fixture(scope="module")
def wanted(graded: Graded) -> Wanted:
    """The decisions of each pair of graders, doubled so that they are integers, and their tasks."""
    result = {}
    for (a, b), (breakdown, label) in itertools.product(PAIRS, graded.breakdowns()):
        cells = [
            cell
            for cell, values in graded.shared((a, b), breakdown, label).items()
            if len(values) == 2
        ]
        if cells:
            of_a, of_b = (
                [round(2 * graded.decisions[name][cell]) for cell in cells] for name in (a, b)
            )
            result[a, b, breakdown, label] = (of_a, of_b, [graded.task_of[cell] for cell in cells])
    return result


def test_every_two_graders_are_compared_once_and_agree_as_scikit_learn_says(
    figures: Table, wanted: Wanted
) -> None:
    assert wanted.keys() == figures.keys()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            key: {
                "kappa": cohen_kappa_score(a, b),
                "macro_f1": f1_score(a, b, average="macro"),
                "agreement": accuracy_score(a, b),
                "n": len(a),
                "n_tasks": len(set(tasks)),
                "met_share_a": sum(a) / 2 / len(a),
                "met_share_b": sum(b) / 2 / len(b),
            }
            for key, (a, b, tasks) in sorted(wanted.items())[
                ::3
            ]  # scikit-learn takes a millisecond for each figure
        }

    assert differing(expected, figures) == []


@pytest.mark.slow
def test_the_mean_of_the_tasks_macro_f1_is_that_of_scikit_learn(
    figures: Table, wanted: Wanted
) -> None:
    expected = {}
    for key, (a, b, tasks) in sorted(wanted.items())[::3]:
        of_task = defaultdict(list)
        for one, other, task in zip(a, b, tasks, strict=True):
            of_task[task].append((one, other))
        if key[2] == "all":
            sides = [[*zip(*pairs, strict=True)] for pairs in of_task.values()]
            absent: dict[str, Any] = {"labels": [0, 2], "zero_division": 0.0}
            for column, how in (
                ("macro_f1_task_mean", {}),
                ("macro_f1_task_mean_absent_as_0", absent),
            ):
                scores = (f1_score(*each, average="macro", **how) for each in sides)
                expected.setdefault(key, {})[column] = statistics.fmean(scores)

    assert differing(expected, figures) == []


def test_graders_are_named_and_majorities_know_their_members(reader: Reader) -> None:
    kinds = {"people": "imported"} | dict.fromkeys(MEMBERS, "majority")
    voices = {AS_BINARY: "tern"}
    actual = {
        each["grader"]: (each["kind"], tuple(each["members"]))
        for each in reader.rows("from graders")
    }

    assert {
        name: (
            kinds.get(name, "judge"),
            tuple(sorted(MEMBERS.get(name, (voices.get(name, name),)))),
        )
        for name in (*GRADERS, "a-judge#2", "a-judge#3", "judge-b#2")
    } == actual


# effective votes


def votes_by_hand(graded: Graded, voters: tuple[str, ...], people: tuple[str, ...] = ()) -> float:
    """The effective votes of graders by definition: against people or, without them, the majority
    of the others.
    """
    correlations = []
    for a, b in itertools.combinations(voters, 2):
        others = people or tuple(name for name in voters if name not in {a, b})
        errors = []
        for cell in graded.decisions[a].keys() & graded.decisions[b].keys():
            votes = [
                graded.decisions[name][cell] for name in others if cell in graded.decisions[name]
            ]
            decided = [value for value in set(votes) if votes.count(value) > len(votes) / 2]
            errors += [
                [abs(graded.decisions[name][cell] - value) for name in (a, b)] for value in decided
            ]
        correlations.append(statistics.correlation(*zip(*errors, strict=True)))
    return len(voters) / (1 + (len(voters) - 1) * max(0.0, statistics.fmean(correlations)))


@pytest.mark.parametrize("name", ["all graders", "a-judge (trials)", "panel", "four"])
def test_effective_votes_without_labels_are_against_the_majority(
    graded: Graded, reader: Reader, name: str
) -> None:
    result = reliability_of(reader)[name, "all", ""]

    assert len(SETS[name]) == result["n_voters"]
    assert pytest.approx(votes_by_hand(graded, SETS[name])) == result["effective_votes"]
    assert (
        result["effective_votes_ci_low"]
        <= result["effective_votes"]
        <= result["effective_votes_ci_high"]
    )
    assert result["effective_votes_is_small"]
    assert "nobody labelled" in result["effective_votes_note"]


@pytest.mark.slow
def test_effective_votes_are_against_people_who_label(few_draws: None, tmp_path: Path) -> None:
    world = graded_world(seed=2, n_tasks=16)
    graded = Graded(world)
    labellers = [row("labellers", judge="people", import_batch="b")]
    with aggregated(
        tmp_path, world | {"labellers": labellers}, majorities=MAJORITIES
    ).reader() as reader:
        rows = reliability_of(reader)

    for name, voters in {
        "all graders": ("a-judge", "judge-b", AS_BINARY),
        "panel": ("a-judge", "judge-b"),
    }.items():
        result = rows[name, "all", ""]
        assert len(voters) == result["n_voters"]
        assert result["effective_votes_note"] is None
        assert (
            pytest.approx(votes_by_hand(graded, voters, ("people",))) == result["effective_votes"]
        )


# reliability and leniency


def reliability_of(reader: Reader) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = reader.rows("from grader_reliability")
    return {(each["grader_set"], each["breakdown"], each["label"]): each for each in rows}


def test_reliability_is_krippendorffs_alpha_by_its_definition(
    graded: Graded, reader: Reader
) -> None:
    breakdowns = [
        cell for cell in graded.breakdowns() if cell[0] in {"all", "category", "severity"}
    ]
    expected = {}
    for (name, members), cell in itertools.product(SETS.items(), breakdowns):
        shared = graded.shared(members, *cell)
        units = list(shared.values())
        expected[name, *cell] = {
            "alpha": alpha_by_pairs(units),
            "n": len(units),
            "n_graders": max(map(len, units)),
            "n_tasks": len({graded.task_of[cell] for cell in shared}),
            "unanimous_share": sum(len(set(unit)) == 1 for unit in units) / len(units),
        }

    assert expected.keys() == reliability_of(reader).keys()
    assert differing(expected, reliability_of(reader)) == []


def test_leniency_is_the_share_called_met_beyond_that_of_others(
    graded: Graded, reader: Reader
) -> None:
    members = SETS["all graders"]
    expected = {}
    for name in members:
        beside = {
            cell: [
                graded.decisions[m][cell]
                for m in members
                if m != name and cell in graded.decisions[m]
            ]
            for cell in graded.decisions[name]
        }
        own = [graded.decisions[name][cell] for cell, values in beside.items() if values]
        means = [
            statistics.fmean(own),
            statistics.fmean(statistics.fmean(v) for v in beside.values() if v),
        ]
        expected[name] = {
            "met_share": means[0],
            "others_met_share": means[1],
            "leniency": means[0] - means[1],
        }
        expected[name]["n"] = len(own)
    actual = {each["grader"]: each for each in reader.rows("from judge_leniency")}

    assert expected.keys() == actual.keys()
    assert differing(expected, actual) == []


# small cases

DECIDED = (1.0, 0.0, 1.0, 1.0)


def small(
    labels: Mapping[str, tuple[float | None, ...]], n_tasks: int = 2, **of_judge: dict[str, Any]
) -> Rows:
    """Equally labelled tasks, with a criterion for each label of a grader."""
    rubrics = {f"t{i}": [(4, "Risk")] * len(next(iter(labels.values()))) for i in range(n_tasks)}
    about = {"rubrics": rubrics, "of_response": {"chars_alnum": 100}}
    graded = [
        judged(dict.fromkeys(rubrics, of), **about, judge=name, **of_judge.get(name, {}))
        for name, of in labels.items()
    ]
    verdicts = [{"verdicts": each["verdicts"]} for each in graded]
    return combined(tasks_of(rubrics), {"responses": graded[0]["responses"]}, *verdicts)


@pytest.mark.parametrize(
    ("labels", "of_judge", "wanted"),
    [
        # On the fourth criterion one says met, one unmet, and one nothing: no majority.
        (
            {
                "a": (1.0, 1.0, 0.0, 1.0),
                "b": (1.0, 0.0, 0.0, None),
                "people": (0.0, 0.0, 0.0, 0.0),
            },
            {"people": {"source": "imported"}},
            [("a", 6, 2 / 3, 1 / 3), ("b", 6, 1 / 3, 1 / 3), ("majority", 6, 1 / 3, 0.0)],
        ),
        # On the first criterion two say partly met, on the third all say unmet; on the second and
        # fourth no majority.
        (
            {
                "a": (0.5, 1.0, 0.0, 1.0),
                "b": (0.5, 0.5, 0.0, 0.0),
                "c": (0.0, 0.0, 0.0, 0.5),
            },
            {name: {"grading": "ternary"} for name in "abc"},
            [("a", 4, 0.25, 0.25), ("b", 4, 0.25, 0.25), ("c", 4, 0.0, 0.25)],
        ),
    ],
)
def test_three_graders_make_a_majority_in_their_steps(
    published: Fill, labels: dict[str, Any], of_judge: dict[str, Any], wanted: list[tuple[Any, ...]]
) -> None:
    reader = published(small(labels, **of_judge))
    query = """
        select grader_a, n, met_share_a, met_share_b from intermediate.agreement_figures
        where breakdown = 'all' and grader_b in ('majority', 'people') and 'majority' in (grader_a, grader_b) order by 1
    """

    assert [(list(labels),)] == reader.table("select members from graders where kind = 'majority'")[
        1
    ]
    assert wanted == reader.table(query)[1]


@pytest.mark.slow
def test_a_configured_majority_may_replace_the_usual_one(tmp_path: Path) -> None:
    tables = small(dict.fromkeys("abcd", DECIDED))
    query = "select members from graders where kind = 'majority'"

    for rows, (first, second, third) in ((tables, "abc"), ({}, "bcd")):
        aggregated(tmp_path, rows, majorities={"majority": (third, second, first)})
        assert [{"members": [first, second, third]}] == rows_in(tmp_path, query)


def test_a_grader_of_refused_tasks_alone_has_no_voice_in_the_majority(published: Fill) -> None:
    tables = small(
        {
            "a": DECIDED,
            "b": DECIDED,
            "c": DECIDED,
        }
    )
    tables["verdicts"] = [
        each for each in tables["verdicts"] if each["judge"] != "c" or each["task_id"] == "t1"
    ]
    tables |= refused("t1")

    assert [each["grader"] for each in published(tables).rows("from graders order by grader")] == [
        "a",
        "b",
    ]


def test_responses_of_one_length_stand_in_one_quarter(published: Fill) -> None:
    reader = published(small({"a": DECIDED, "b": DECIDED}, n_tasks=8))

    assert (
        reader.value(
            "select count(*) from intermediate.agreement_figures where breakdown = 'length'"
        )
        == 1
    )
