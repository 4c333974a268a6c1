"""Rules evaluated on imported verdicts, against figures that are counted from the raw files in
plain Python.

The strong judge's verdicts are real; the cheap one's are made from them twice, with seeded errors.
"""

import json
import random
import re
from collections import Counter, defaultdict
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tasks.cascade import CascadeResult, evaluated
from tasks.check import check
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.figures.scope import Scope
from tasks.figures.shown.corrections import evaluated_rules
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.cascades.evaluation import Bound, Evaluation, for_choosing
from tests.kit import SHARED_DATA, job_on, write_jsonl
from warehouse import Warehouse

TASKS, RESPONSES, VERDICTS = (
    SHARED_DATA / "prbench" / file
    for file in (
        "finance_hard.parquet",
        "responses_finance_hard_3models.jsonl",
        "verdicts_finance_hard_3models.jsonl",
    )
)
Row = dict[str, Any]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(file.is_file() for file in (TASKS, RESPONSES, VERDICTS)),
        reason="real data are not beside the checkout",
    ),
]


Rubrics = dict[tuple[str, str], tuple[float, str, str, str]]
KINDS = {
    "number": re.compile(r"\d"),
    "negation": re.compile(
        r"\b(not|no|never|none|without|avoids?|fails? to)\b|n['’]t\b", re.IGNORECASE
    ),
    "list": re.compile(
        r"\bat least \w+( or more)? (of|from|out of)\b|\bany (two|three|\d+) of\b", re.IGNORECASE
    ),
}


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
            sure = round(generator.uniform(0.4, 0.9) if is_hard else generator.uniform(0.7, 1.0), 3)
            rows.append(
                {
                    **row,
                    "judge": "cheap",
                    "judge_trial": repetition,
                    "criteria_met": row["criteria_met"] is not is_wrong,
                    "confidence": sure,
                }
            )
    return rows


@pytest.fixture(scope="module")
def strong() -> list[Row]:
    return [
        json.loads(line) | {"judge": "strong"}
        for line in VERDICTS.read_text(encoding="utf-8").splitlines()
    ]


@pytest.fixture(scope="module")
def cheap(strong: list[Row]) -> list[Row]:
    return simulated(strong)


@pytest.fixture(scope="module")
def job(strong: list[Row], cheap: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("real")
    judges = [
        {
            "name": "openai/d",
            "label": "cheap",
            "kind": "decisions",
            "threshold": 0.4,
        }
    ]
    job = job_on(TASKS, folder / "warehouse", quality={"criteria_per_task": "warn"}, judges=judges)
    ingest(job)
    import_responses(job, RESPONSES)
    import_verdicts(job, write_jsonl(folder / "strong.jsonl", strong))
    import_verdicts(job, write_jsonl(folder / "cheap.jsonl", cheap))
    check(job, ["ingest"])
    return job


@pytest.fixture(scope="module")
def result(job: Job) -> CascadeResult:
    given = {
        **job.key,
        "cheap": "cheap",
        "strong": "strong",
        "splits": [],
    }
    with Warehouse(job.warehouse).reader() as reader:
        return evaluated(reader, given, Bound("agreement", 0.95), 500)


@pytest.fixture(scope="module")
def rubrics() -> Rubrics:
    """(task, criterion) -> weight, category, severity and text, from the raw rows."""
    by_key = {}
    for row in pq.read_table(TASKS).to_pylist():
        for item in row["rubric"]:
            notes = item["annotations"]
            weight = notes[notes["weight_class"].replace(" ", "_") + "_weight"]
            by_key[row["task"], item["id"]] = (
                float(weight),
                notes["criteria_category"],
                notes["weight_class"],
                item["title"],
            )
    return by_key


def expected(
    each: Evaluation, strong: list[Row], cheap: list[Row], rubrics: Rubrics
) -> dict[str, Any]:
    """The figures of a rule on the held-out tasks, counted criterion by criterion."""
    when = each.candidate.when
    repetitions: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in cheap:
        repetitions[row["task"], row["model"], row["criterion"]].append(row)
    tasks = sorted({row["task"] for row in strong})
    choosing = {
        task for task, is_chosen in zip(tasks, for_choosing(tasks), strict=True) if is_chosen
    }
    table: Counter[tuple[bool, bool]] = Counter()
    n_escalated = 0
    points: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in strong:
        if row["task"] in choosing:
            continue
        first, second = repetitions[row["task"], row["model"], row["criterion"]]
        weight, category, severity, title = rubrics[row["task"], row["criterion"]]
        goes = when is None or (
            (when.disagreement and first["criteria_met"] != second["criteria_met"])
            or (when.weight_above is not None and abs(weight) > when.weight_above)
            or category in when.categories
            or severity in when.severities
            or any(KINDS[kind].search(title) for kind in when.kinds)
            or (when.confidence_below is not None and first["confidence"] < when.confidence_below)
        )
        n_escalated += goes
        met = first["criteria_met"]
        if each.candidate.threshold is not None:
            met = (
                first["confidence"] if met else 1 - first["confidence"]
            ) >= each.candidate.threshold
        says = row["criteria_met"] if goes else met
        table[says, row["criteria_met"]] += 1
        of_response = points[row["model"], row["task"]]
        of_response[0] += weight * says
        of_response[1] += weight * row["criteria_met"]
        of_response[2] += max(0.0, weight)
    n = sum(table.values())
    agreement = (table[True, True] + table[False, False]) / n
    met = (table[True, True] + table[True, False]) / n, (table[True, True] + table[False, True]) / n
    by_chance = met[0] * met[1] + (1 - met[0]) * (1 - met[1])
    scores = {
        model: [
            sum(p[side] / p[2] for (m, _), p in points.items() if m == model)
            / sum(m == model for m, _ in points)
            for side in (0, 1)
        ]
        for model in {model for model, _ in points}
    }
    changes = {model: cascade - alone for model, (cascade, alone) in scores.items()}
    most = max(changes, key=lambda model: abs(changes[model]))
    return {
        "n": n,
        "share": n_escalated / n,
        "agreement": agreement,
        "kappa": (agreement - by_chance) / (1 - by_chance),
        "change": changes[most],
        "tau": tau_of(scores),
    }


def tau_of(scores: dict[str, list[float]]) -> float:
    """Concordant minus discordant pairs, as a share of all pairs; no two real models tie."""
    models = sorted(scores)
    pairs = [(a, b) for index, a in enumerate(models) for b in models[:index]]
    signs = [
        1 if (scores[a][0] - scores[b][0]) * (scores[a][1] - scores[b][1]) > 0 else -1
        for a, b in pairs
    ]
    return sum(signs) / len(pairs)


def test_every_rule_has_the_figures_that_are_counted_from_the_files(
    result: CascadeResult, strong: list[Row], cheap: list[Row], rubrics: Rubrics
) -> None:
    whens = [each.candidate.when for each in result.evaluations]
    assert any(when and when.disagreement for when in whens)
    assert any(when and when.confidence_below is not None for when in whens)
    # A fifth of the rules, of every kind: counting one takes a second.
    for each in result.evaluations[::5]:
        wanted = expected(each, strong, cheap, rubrics)
        by_key = each.held_out
        assert wanted.pop("n") == by_key["n_paired"]
        assert {
            "share": by_key["escalated_share"],
            "agreement": by_key["agreement"],
            "kappa": by_key["kappa"],
            "change": by_key["score_change"],
            "tau": by_key["ranking_tau"],
        } == pytest.approx(wanted), each.candidate.name


def test_each_interval_holds_its_figure_and_the_picked_rule_is_the_cheapest_that_keeps_the_bound(
    result: CascadeResult,
) -> None:
    for each in result.evaluations:
        for name in ("agreement", "kappa", "escalated_share"):
            value, low, high = (
                each.held_out[f"{name}{end}"] for end in ("", "_ci_low", "_ci_high")
            )
            if low is not None and value is not None and high is not None:
                assert low - 1e-9 <= value <= high + 1e-9, each.candidate.name
    assert result.picked is not None
    keep = [
        each for each in result.evaluations if (each.chosen_on["agreement_ci_low"] or 0.0) >= 0.95
    ]
    assert result.picked in keep
    assert (
        min(each.chosen_on["strong_calls"] or 0.0 for each in keep)
        == result.picked.chosen_on["strong_calls"]
    )


def test_criteria_that_one_judge_failed_on_are_counted_and_left_out(
    result: CascadeResult, strong: list[Row]
) -> None:
    stored = result.stored
    assert len(stored.paired.strong) == len(strong)
    assert stored.n_first_failed == 0
    assert stored.n_strong_failed == 0
    assert stored.n_without_second == 0
    assert stored.has_confidence


def test_a_rule_with_another_threshold_is_shown_as_a_judge_of_the_configuration(job: Job) -> None:
    Warehouse(job.warehouse).publish()
    with Warehouse(job.warehouse).reader() as reader:
        given = {
            "cheap": "cheap",
            "strong": "strong",
            "bound": None,
            "splits": [],
        }
        rows = evaluated_rules(Scope(job, reader), given)
    shown = [
        yaml.safe_load(row["configuration"])
        for row in rows
        if "threshold" in (row["configuration"] or "")
    ]
    judges = [
        Settings.model_validate({"dataset": {"source": "sample"}, "judges": each}).judges[0]
        for each in shown
    ]
    own = job.settings.judges[0]
    assert len({judge.threshold for judge in judges}) == len(judges) > 1
    assert all(own == judge.model_copy(update={"threshold": own.threshold}) for judge in judges)
