"""Agreement of made-up graders, against scikit-learn and against decisions counted one by one."""

import itertools
import statistics
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score

from tests.kit import (
    Row,
    Rows,
    aggregated,
    combined,
    differing,
    few_published,
    row,
    rows_in,
)
from tests.tasks.aggregate.world import (
    MAJORITIES,
    REFUSED,
    RESAMPLES,
    graded_world,
    refused,
)
from tests.tasks.compare.comparisons import judged, tasks_of
from tests.tasks.report.synthetic.resamples import few_resamples
from tests.tasks.rules.agreement_oracle import alpha_by_pairs
from warehouse import Reader

AS_BINARY = "tern (as binary)"
"""The ternary judge, read as binary, as it is beside graders that grade in binary."""
MEMBERS = {
    "majority": ("a-judge", "judge-b", AS_BINARY),
    "a-judge (majority of trials)": ("a-judge", "a-judge#2", "a-judge#3"),
    "panel": ("a-judge", "judge-b", "people"),
    "four": ("a-judge", "judge-b", "people", AS_BINARY),
    "with a stranger": ("a-judge", "judge-b", "nobody"),
}
"""Majority -> its members. Two trials make none."""
SETS = {
    "all graders": ("a-judge", "judge-b", "people", AS_BINARY),
    "a-judge (trials)": ("a-judge", "a-judge#2", "a-judge#3"),
    "judge-b (trials)": ("judge-b", "judge-b#2"),
    "panel": MEMBERS["panel"],
    "four": MEMBERS["four"],
    "with a stranger": MEMBERS["with a stranger"],
}
GRADERS = ("a-judge", "judge-b", "people", AS_BINARY, *MEMBERS)
COMPARED = (sorted(GRADERS), SETS["a-judge (trials)"], SETS["judge-b (trials)"])
"""Groups of graders in which every two are compared."""


class Cell(NamedTuple):
    """A criterion of a response."""

    response_id: str
    criterion_id: str


class FigureKey(NamedTuple):
    grader_a: str
    grader_b: str
    breakdown: str
    label: str


class Pairs(NamedTuple):
    """The decisions of two graders, doubled so that they are integers, and the task of each."""

    values_a: list[int]
    values_b: list[int]
    task_ids: list[str]


class Graded:
    """The decisions that count of every grader, and their labels."""

    def __init__(self, world: Rows):
        self.decisions: dict[str, dict[Cell, float]] = defaultdict(dict)
        self.labels: dict[Cell, dict[str, str]] = {}
        self.task_ids: dict[Cell, str] = {}
        tasks = {task["task_id"]: task for task in world["task_rows"]}
        del tasks[REFUSED]
        criteria = {
            (line["criterion_id"], line["content_hash"]): line
            for line in world["criteria"]
        }
        for verdict in world["verdicts"]:
            content = (verdict["criterion_id"], verdict["criterion_hash"])
            task = tasks.get(verdict["task_id"])
            if content in criteria and task and verdict["value"] is not None:
                self._add(verdict, criteria[content], task)
        for cell, value in self.decisions["tern"].items():
            self.decisions[AS_BINARY][cell] = float(value == 1)
        for name, members in MEMBERS.items():
            for cell in self.task_ids:
                for value, n_votes in Counter(self.votes(members, cell)).items():
                    if n_votes > len(members) / 2:
                        self.decisions[name][cell] = value

    def _add(self, verdict: Row, criterion: Row, task: Row):
        cell = Cell(verdict["response_id"], verdict["criterion_id"])
        trial = verdict["judge_trial"]
        grader = verdict["judge"] if trial == 1 else f"{verdict['judge']}#{trial}"
        self.decisions[grader][cell] = verdict["value"]
        self.task_ids[cell] = verdict["task_id"]
        self.labels[cell] = {
            "category": criterion["category"] or "(none)",
            "severity": criterion["severity"],
            "field": task["field"],
            "model": verdict["model"],
            "all": "",
        }

    def votes(self, graders: Sequence[str], cell: Cell) -> list[float]:
        """Return the decisions of graders on a criterion of a response."""
        return [
            self.decisions[name][cell]
            for name in graders
            if cell in self.decisions[name]
        ]

    def breakdowns(self) -> list[tuple[str, str]]:
        """Return every breakdown with each of its labels."""
        pairs = set()
        for labels in self.labels.values():
            pairs.update(labels.items())
        return sorted(pairs)

    def shared(
        self, graders: Sequence[str], breakdown: str, label: str
    ) -> dict[Cell, list[float]]:
        """Return the graders' decisions on criteria that at least two of them decided."""
        votes_by_cell = {}
        for cell, labels in self.labels.items():
            votes = self.votes(graders, cell) if labels[breakdown] == label else []
            if len(votes) >= 2:
                votes_by_cell[cell] = votes
        return votes_by_cell


@pytest.fixture(scope="module")
def graded(world: Rows) -> Graded:
    return Graded(world)


@pytest.fixture(scope="module")
def pair_rows(reader: Reader) -> dict[FigureKey, Row]:
    query = "from intermediate.agreement_figures where breakdown <> 'length'"
    rows = reader.rows(query)
    by_key = {}
    for figure in rows:
        by_key[FigureKey(*(figure[name] for name in FigureKey._fields))] = figure
    assert len(by_key) == len(rows)
    return by_key


@pytest.fixture(scope="module")
def decision_pairs(graded: Graded) -> dict[FigureKey, Pairs]:
    """The decisions of every two graders that are compared."""
    compared = set()
    for group in COMPARED:
        compared.update(itertools.combinations(group, 2))
    pairs_by_key = {}
    for graders, (cell, labels) in itertools.product(compared, graded.labels.items()):
        votes = graded.votes(graders, cell)
        if len(votes) < 2:
            continue
        for breakdown, label in labels.items():
            key = FigureKey(*graders, breakdown, label)
            pairs = pairs_by_key.setdefault(key, Pairs([], [], []))
            pairs.values_a.append(round(2 * votes[0]))
            pairs.values_b.append(round(2 * votes[1]))
            pairs.task_ids.append(graded.task_ids[cell])
    return pairs_by_key


def test_every_two_graders_are_compared_once_and_agree_as_scikit_learn_says(
    pair_rows, decision_pairs
):
    expected = {}
    # scikit-learn takes a millisecond for each figure
    for key, (values_a, values_b, task_ids) in sorted(decision_pairs.items())[::3]:
        with warnings.catch_warnings(action="ignore"):
            expected[key] = {
                "kappa": cohen_kappa_score(values_a, values_b),
                "macro_f1": f1_score(values_a, values_b, average="macro"),
                "agreement": accuracy_score(values_a, values_b),
                "n": len(task_ids),
                "n_tasks": len(set(task_ids)),
                "met_share_a": statistics.fmean(values_a) / 2,
                "met_share_b": statistics.fmean(values_b) / 2,
            }

    assert pair_rows.keys() == decision_pairs.keys()
    assert differing(expected, pair_rows) == []


@pytest.mark.slow
def test_the_mean_of_the_tasks_macro_f1_is_that_of_scikit_learn(
    pair_rows, decision_pairs
):
    expected = {}
    keys = sorted(key for key in decision_pairs if key.breakdown == "all")
    for key in keys[::3]:
        pairs = decision_pairs[key]
        scores = []
        scores_with_absent = []
        decisions_by_task = sorted(
            zip(pairs.task_ids, pairs.values_a, pairs.values_b, strict=True)
        )
        for _, decisions in itertools.groupby(decisions_by_task, key=itemgetter(0)):
            _, values_a, values_b = zip(*decisions, strict=True)
            sides = (values_a, values_b)
            scores.append(f1_score(*sides, average="macro"))
            absent_as_0 = {"labels": [0, 2], "zero_division": 0.0}
            scores_with_absent.append(
                f1_score(*sides, average="macro", **absent_as_0)
            )
        expected[key] = {
            "macro_f1_task_mean": statistics.fmean(scores),
            "macro_f1_task_mean_absent_as_0": statistics.fmean(scores_with_absent),
        }

    assert differing(expected, pair_rows) == []


def test_graders_are_named_and_majorities_know_their_members(reader):
    expected = {}
    for name in ("a-judge", "a-judge#2", "a-judge#3", "judge-b", "judge-b#2", "tern"):
        expected[name] = ("judge", [name])
    expected["people"] = ("imported", ["people"])
    expected[AS_BINARY] = ("judge", ["tern"])
    for name, members in MEMBERS.items():
        judges = sorted(member.removesuffix(" (as binary)") for member in members)
        expected[name] = ("majority", judges)

    rows = reader.rows("from graders")

    graders = {row["grader"]: (row["kind"], row["members"]) for row in rows}
    assert graders == expected


# effective votes


def votes_by_hand(
    graded: Graded, voters: Sequence[str], people: Sequence[str] = ()
) -> float:
    """The effective votes of graders by definition: against people or, without them, the majority
    of the others.
    """
    correlations = []
    for pair in itertools.combinations(voters, 2):
        peers = people or [name for name in voters if name not in pair]
        errors = []
        for cell in graded.task_ids:
            decisions = graded.votes(pair, cell)
            votes = graded.votes(peers, cell)
            for value, n_votes in Counter(votes).items():
                if len(decisions) == 2 and n_votes > len(votes) / 2:
                    errors.append([abs(decision - value) for decision in decisions])
        correlations.append(statistics.correlation(*zip(*errors, strict=True)))
    correlation = max(0.0, statistics.fmean(correlations))
    return len(voters) / (1 + (len(voters) - 1) * correlation)


def reliability_in(reader: Reader) -> dict[tuple[str, str, str], Row]:
    rows = reader.rows("from grader_reliability")
    return {
        (figure["grader_set"], figure["breakdown"], figure["label"]): figure
        for figure in rows
    }


@pytest.mark.parametrize("name", ["all graders", "a-judge (trials)", "panel", "four"])
def test_effective_votes_without_labels_are_against_the_majority(
    graded, reader, name
):
    figure = reliability_in(reader)[name, "all", ""]

    assert figure["n_voters"] == len(SETS[name])
    assert figure["effective_votes"] == pytest.approx(
        votes_by_hand(graded, SETS[name])
    )
    assert figure["effective_votes_ci_low"] <= figure["effective_votes"]
    assert figure["effective_votes"] <= figure["effective_votes_ci_high"]
    assert figure["effective_votes_is_small"]
    assert "nobody labelled" in figure["effective_votes_note"]


@pytest.mark.slow
def test_effective_votes_are_against_people_who_label(tmp_path):
    world = graded_world(seed=2, n_tasks=12)
    world["labellers"] = [row("labellers", judge="people", import_batch="b")]

    with few_published("grader_reliability"), few_resamples(RESAMPLES):
        warehouse = aggregated(tmp_path, world, majorities=MAJORITIES)
    with warehouse.reader() as reader:
        figures = reliability_in(reader)

    for name, voters in (
        ("all graders", ("a-judge", "judge-b", AS_BINARY)),
        ("panel", ("a-judge", "judge-b")),
    ):
        figure = figures[name, "all", ""]
        expected = votes_by_hand(Graded(world), voters, people=("people",))
        assert figure["n_voters"] == len(voters)
        assert figure["effective_votes_note"] is None
        assert figure["effective_votes"] == pytest.approx(expected)


# reliability and leniency


def test_reliability_is_krippendorffs_alpha_by_its_definition(graded, reader):
    expected = {}
    for (name, members), (breakdown, label) in itertools.product(
        SETS.items(), graded.breakdowns()
    ):
        if breakdown in {"all", "category", "severity"}:
            shared = graded.shared(members, breakdown, label)
            units = list(shared.values())
            n_unanimous = sum(len(set(unit)) == 1 for unit in units)
            expected[name, breakdown, label] = {
                "alpha": alpha_by_pairs(units),
                "n": len(units),
                "n_graders": max(map(len, units)),
                "n_tasks": len({graded.task_ids[cell] for cell in shared}),
                "unanimous_share": n_unanimous / len(units),
            }

    figures = reliability_in(reader)

    assert figures.keys() == expected.keys()
    assert differing(expected, figures) == []


def test_leniency_is_the_share_called_met_beyond_that_of_others(graded, reader):
    expected = {}
    for name in SETS["all graders"]:
        peers = [member for member in SETS["all graders"] if member != name]
        values = []
        means_of_others = []
        for cell, value in graded.decisions[name].items():
            votes = graded.votes(peers, cell)
            if votes:
                values.append(value)
                means_of_others.append(statistics.fmean(votes))
        expected[name] = {
            "n": len(values),
            "met_share": statistics.fmean(values),
            "others_met_share": statistics.fmean(means_of_others),
            "leniency": statistics.fmean(values) - statistics.fmean(means_of_others),
        }

    figures = {
        figure["grader"]: figure for figure in reader.rows("from judge_leniency")
    }

    assert figures.keys() == expected.keys()
    assert differing(expected, figures) == []


# small cases

DECISIONS = (1.0, 0.0, 1.0, 1.0)


def rows_of_graders(
    decisions: Mapping[str, Sequence[float | None]],
    n_tasks: int = 2,
    columns: Mapping[str, Row] | None = None,
) -> Rows:
    """Tasks with the same decisions by each grader, one for each criterion; `columns` are further
    ones of a grader's verdicts.
    """
    n_criteria = len(next(iter(decisions.values())))
    rubrics = {f"t{number}": [(4, "Risk")] * n_criteria for number in range(n_tasks)}
    rows = tasks_of(rubrics)
    for judge, values in decisions.items():
        graded = judged(
            dict.fromkeys(rubrics, values),
            rubrics=rubrics,
            of_response={"chars_alnum": 100},
            judge=judge,
            **(columns or {}).get(judge, {}),
        )
        rows["responses"] = graded["responses"]
        rows = combined(rows, {"verdicts": graded["verdicts"]})
    return rows


@pytest.mark.parametrize(
    ("decisions", "columns", "expected"),
    [
        pytest.param(
            {
                "a": (1.0, 1.0, 0.0, 1.0),
                "b": (1.0, 0.0, 0.0, None),
                "people": (0.0, 0.0, 0.0, 0.0),
            },
            {"people": {"source": "imported"}},
            [
                ("a", 6, 2 / 3, 1 / 3),
                ("b", 6, 1 / 3, 1 / 3),
                ("majority", 6, 1 / 3, 0.0),
            ],
            id="On the fourth criterion one says met, one unmet, and one nothing: no majority.",
        ),
        pytest.param(
            {
                "a": (0.5, 1.0, 0.0, 1.0),
                "b": (0.5, 0.5, 0.0, 0.0),
                "c": (0.0, 0.0, 0.0, 0.5),
            },
            {judge: {"grading": "ternary"} for judge in "abc"},
            [("a", 4, 0.25, 0.25), ("b", 4, 0.25, 0.25), ("c", 4, 0.0, 0.25)],
            id="On the first criterion two say partly met, on the third all say unmet.",
        ),
    ],
)
def test_three_graders_make_a_majority_in_their_steps(
    published, decisions, columns, expected
):
    reader = published(rows_of_graders(decisions, columns=columns))

    majorities = reader.rows("select members from graders where kind = 'majority'")
    _, figures = reader.table(
        "select grader_a, n, met_share_a, met_share_b from intermediate.agreement_figures"
        " where breakdown = 'all' and grader_b in ('majority', 'people')"
        " and 'majority' in (grader_a, grader_b) order by 1"
    )
    assert majorities == [{"members": list(decisions)}]
    assert figures == expected


@pytest.mark.slow
def test_a_configured_majority_may_replace_the_usual_one(tmp_path):
    rows = rows_of_graders(dict.fromkeys("abcd", DECISIONS))
    rows["grader_sets"] = [
        row("grader_sets", majority="majority", members=["a", "b", "c"])
    ]

    aggregated(tmp_path, rows, majorities={"majority": ("d", "c", "b")})

    majorities = rows_in(
        tmp_path, "select members from graders where kind = 'majority'"
    )
    assert majorities == [{"members": ["b", "c", "d"]}]


def test_a_grader_of_refused_tasks_alone_has_no_voice_in_the_majority(published):
    rows = rows_of_graders(dict.fromkeys("abc", DECISIONS)) | refused("t1")
    rows["verdicts"] = [
        verdict
        for verdict in rows["verdicts"]
        if verdict["judge"] != "c" or verdict["task_id"] == "t1"
    ]

    graders = published(rows).rows("select grader from graders order by grader")

    assert graders == [{"grader": "a"}, {"grader": "b"}]


def test_responses_of_one_length_stand_in_one_quarter(published):
    reader = published(rows_of_graders(dict.fromkeys("ab", DECISIONS), n_tasks=8))

    n_quarters = reader.value(
        "select count(*) from intermediate.agreement_figures where breakdown = 'length'"
    )
    assert n_quarters == 1
