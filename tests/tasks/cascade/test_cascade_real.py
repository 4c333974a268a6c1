"""Rules evaluated on imported verdicts, against figures that are counted from the raw files in
plain Python.

The strong judge's verdicts are real; the cheap one's are made from them twice, with seeded errors.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, compress
from statistics import mean
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import yaml

from tasks.cascade import CascadeResult, cascade_result
from tasks.check import check
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.figures.scope import Scope
from tasks.figures.shown.corrections import evaluated_rules
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.cascades.evaluation import Bound, for_choosing
from tasks.rules.cascades.rules import CandidateRule, When
from tests.kit import SHARED_DATA, few_published, job_on, write_jsonl
from tests.tasks.judge.values import distinct
from warehouse import Warehouse

TASKS = SHARED_DATA / "prbench/finance_hard.parquet"
RESPONSES = SHARED_DATA / "prbench/responses_finance_hard_3models.jsonl"
VERDICTS = SHARED_DATA / "prbench/verdicts_finance_hard_3models.jsonl"
Row = dict[str, Any]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(file.is_file() for file in (TASKS, RESPONSES, VERDICTS)),
        reason="real data are not beside the checkout",
    ),
]


KINDS = {
    "number": re.compile(r"\d"),
    "negation": re.compile(
        r"\b(not|no|never|none|without|avoids?|fails? to)\b|n['’]t\b",
        re.IGNORECASE,
    ),
    "list": re.compile(
        r"\bat least \w+( or more)? (of|from|out of)\b|\bany (two|three|\d+) of\b",
        re.IGNORECASE,
    ),
}


class Criterion(NamedTuple):
    """A criterion in the raw rows."""

    weight: float
    category: str
    severity: str
    title: str


Rubrics = dict[tuple[str, str], Criterion]
"""By task and criterion."""


def simulated(strong: list[Row]) -> list[Row]:
    """Two verdicts of a cheap judge on each criterion, with confidence; one criterion in four is
    hard for it.
    """
    generator = random.Random(20251114)
    rows = []
    for row in strong:
        is_hard = generator.random() < 0.25
        for repetition in (1, 2):
            is_wrong = is_hard and generator.random() < 0.4
            if is_hard:
                confidence = generator.uniform(0.4, 0.9)
            else:
                confidence = generator.uniform(0.7, 1.0)
            rows.append(
                {
                    **row,
                    "judge": "cheap",
                    "judge_trial": repetition,
                    "criteria_met": row["criteria_met"] is not is_wrong,
                    "confidence": round(confidence, 3),
                }
            )
    return rows


@pytest.fixture(scope="module")
def strong() -> list[Row]:
    lines = VERDICTS.read_text().splitlines()
    return [json.loads(line) | {"judge": "strong"} for line in lines]


@pytest.fixture(scope="module")
def cheap(strong: list[Row]) -> list[Row]:
    return simulated(strong)


@pytest.fixture(scope="module")
def job(strong: list[Row], cheap: list[Row], tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("real")
    judge = {
        "name": "openai/d",
        "label": "cheap",
        "kind": "decisions",
        "threshold": 0.4,
    }
    quality = {"criteria_per_task": "warn"}
    job = job_on(
        TASKS,
        folder / "warehouse",
        quality=quality,
        judges=[judge],
    )
    with few_published("intermediate.score_bounds"):
        ingest(job)
        import_responses(job, RESPONSES)
        import_verdicts(job, write_jsonl(folder / "strong.jsonl", strong))
        import_verdicts(job, write_jsonl(folder / "cheap.jsonl", cheap))
        check(job, ["ingest"])
    return job


@pytest.fixture(scope="module")
def result(job: Job) -> CascadeResult:
    parameters = {
        **job.key,
        "cheap": "cheap",
        "strong": "strong",
        "splits": [],
    }
    with Warehouse(job.warehouse).reader() as reader:
        return cascade_result(
            reader,
            parameters,
            Bound("agreement", 0.95),
            500,
        )


@pytest.fixture(scope="module")
def rubrics() -> Rubrics:
    rubrics = {}
    for row in pq.read_table(TASKS).to_pylist():
        for item in row["rubric"]:
            notes = item["annotations"]
            severity = notes["weight_class"]
            weight = float(notes[f"{severity.replace(' ', '_')}_weight"])
            rubrics[row["task"], item["id"]] = Criterion(
                weight,
                notes["criteria_category"],
                severity,
                item["title"],
            )
    return rubrics


@dataclass
class Points:
    """The points of a response: by the rule, by the strong judge alone, and the most possible."""

    rule: float = 0.0
    strong: float = 0.0
    largest: float = 0.0


@dataclass
class Count:
    """What a rule does on the held-out tasks, counted criterion by criterion.

    `verdicts` are counted by (the rule's, the strong judge's), `points` are by model and task.
    """

    verdicts: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    n_escalated: int = 0
    points: dict[tuple[str, str], Points] = field(
        default_factory=lambda: defaultdict(Points)
    )

    @property
    def n_verdicts(self) -> int:
        return self.verdicts.total()

    @property
    def agreement(self) -> float:
        n_agreeing = self.verdicts[True, True] + self.verdicts[False, False]
        return n_agreeing / self.n_verdicts

    @property
    def kappa(self) -> float:
        n_rule = self.verdicts[True, True] + self.verdicts[True, False]
        n_strong = self.verdicts[True, True] + self.verdicts[False, True]
        rule_share = n_rule / self.n_verdicts
        strong_share = n_strong / self.n_verdicts
        by_chance = rule_share * strong_share + (1 - rule_share) * (1 - strong_share)
        return (self.agreement - by_chance) / (1 - by_chance)

    def mean_scores(self) -> dict[str, tuple[float, float]]:
        """The mean score of each model by the rule, and by the strong judge alone."""
        points_by_model = defaultdict(list)
        for (model, _), points in self.points.items():
            points_by_model[model].append(points)
        scores = {}
        for model, responses in points_by_model.items():
            by_rule = mean(points.rule / points.largest for points in responses)
            by_strong = mean(points.strong / points.largest for points in responses)
            scores[model] = (by_rule, by_strong)
        return scores


def is_escalated(
    when: When | None,
    repetitions: Sequence[Row],
    criterion: Criterion,
) -> bool:
    if when is None:
        return True
    if when.disagreement and len(distinct(repetitions, "criteria_met")) > 1:
        return True
    if when.weight_above is not None and abs(criterion.weight) > when.weight_above:
        return True
    confidence = repetitions[0]["confidence"]
    if when.confidence_below is not None and confidence < when.confidence_below:
        return True
    return (
        criterion.category in when.categories
        or criterion.severity in when.severities
        or any(KINDS[kind].search(criterion.title) for kind in when.kinds)
    )


def is_met_by_cheap(row: Row, threshold: float | None) -> bool:
    """Return the decision of a verdict, under another threshold of its probability if given."""
    is_met = row["criteria_met"]
    if threshold is None:
        return is_met
    probability = row["confidence"] if is_met else 1 - row["confidence"]
    return probability >= threshold


def held_out(strong: list[Row]) -> list[Row]:
    """The strong judge's verdicts on the tasks that no rule was chosen on."""
    tasks = sorted({row["task"] for row in strong})
    choosing = set(compress(tasks, for_choosing(tasks)))
    return [row for row in strong if row["task"] not in choosing]


def count_of(
    rule: CandidateRule,
    strong: list[Row],
    cheap: list[Row],
    rubrics: Rubrics,
) -> Count:
    cheap_rows = defaultdict(list)
    for row in cheap:
        cheap_rows[row["task"], row["model"], row["criterion"]].append(row)
    count = Count()
    for row in held_out(strong):
        repetitions = cheap_rows[row["task"], row["model"], row["criterion"]]
        criterion = rubrics[row["task"], row["criterion"]]
        is_met = is_met_by_cheap(repetitions[0], rule.threshold)
        if is_escalated(rule.when, repetitions, criterion):
            is_met = row["criteria_met"]
            count.n_escalated += 1
        count.verdicts[is_met, row["criteria_met"]] += 1
        points = count.points[row["model"], row["task"]]
        points.rule += criterion.weight * is_met
        points.strong += criterion.weight * row["criteria_met"]
        points.largest += max(0.0, criterion.weight)
    return count


def tau_of(scores: Mapping[str, tuple[float, float]]) -> float:
    """Concordant minus discordant pairs, as a share of all pairs; no two real models tie."""
    signs = []
    for (rule_a, strong_a), (rule_b, strong_b) in combinations(scores.values(), 2):
        is_concordant = (rule_a - rule_b) * (strong_a - strong_b) > 0
        signs.append(1 if is_concordant else -1)
    return mean(signs)


def largest_change(scores: Mapping[str, tuple[float, float]]) -> float:
    changes = [by_rule - by_strong for by_rule, by_strong in scores.values()]
    return max(changes, key=abs)


def test_every_rule_has_the_figures_that_are_counted_from_the_files(
    result,
    strong,
    cheap,
    rubrics,
):
    # A fifth of the rules, of every kind: counting one takes a second.
    for evaluation in result.evaluations[::5]:
        count = count_of(evaluation.candidate, strong, cheap, rubrics)
        scores = count.mean_scores()
        expected = {
            "n_paired": count.n_verdicts,
            "escalated_share": count.n_escalated / count.n_verdicts,
            "agreement": count.agreement,
            "kappa": count.kappa,
            "score_change": largest_change(scores),
            "ranking_tau": tau_of(scores),
        }

        figures = {name: evaluation.held_out[name] for name in expected}

        assert figures == pytest.approx(expected), evaluation.candidate.name


def test_rules_with_disagreement_and_confidence_are_tried(result):
    rules = [evaluation.candidate.when or When() for evaluation in result.evaluations]

    assert any(when.disagreement for when in rules)
    assert any(when.confidence_below is not None for when in rules)


@pytest.mark.parametrize("name", ["agreement", "kappa", "escalated_share"])
def test_each_interval_holds_its_figure(name, result):
    for evaluation in result.evaluations:
        figures = evaluation.held_out
        if figures[f"{name}_ci_low"] is not None:
            low = figures[f"{name}_ci_low"] - 1e-9
            high = figures[f"{name}_ci_high"] + 1e-9
            assert low <= figures[name] <= high, evaluation.candidate.name


def test_the_picked_rule_is_the_cheapest_that_keeps_the_bound(result):
    figures = [evaluation.chosen_on for evaluation in result.evaluations]
    within_bound = [
        row for row in figures if (row["agreement_ci_low"] or 0.0) >= 0.95
    ]

    fewest_calls = min(row["strong_calls"] for row in within_bound)
    assert result.picked is not None
    assert result.picked.chosen_on in within_bound
    assert result.picked.chosen_on["strong_calls"] == fewest_calls


def test_all_pairs_count_where_no_judge_failed(result, strong):
    pair = result.pair

    assert len(pair.paired.strong) == len(strong)
    assert pair.n_first_failed == 0
    assert pair.n_strong_failed == 0
    assert pair.n_without_second == 0
    assert pair.has_confidence


def test_a_rule_with_another_threshold_is_shown_as_a_judge_of_the_configuration(job):
    parameters = {
        "cheap": "cheap",
        "strong": "strong",
        "bound": None,
        "splits": [],
    }

    with Warehouse(job.warehouse).reader() as reader:
        rows = evaluated_rules(Scope(job, reader), parameters)

    cheap = job.settings.judges[0]
    thresholds = []
    for row in rows:
        configuration = yaml.safe_load(row["configuration"] or "[]")
        if configuration and "threshold" in configuration[0]:
            settings = {"dataset": {"source": "sample"}, "judges": configuration}
            [judge] = Settings.model_validate(settings).judges
            thresholds.append(judge.threshold)
            assert judge.model_copy(update={"threshold": cheap.threshold}) == cheap
    assert len(thresholds) > 1
    assert len(set(thresholds)) == len(thresholds)
