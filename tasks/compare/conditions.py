"""One model under several conditions: what differs from its baseline, and which criteria changed."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import sql
from tasks.aggregate.conditions import Definitions, stored_conditions, unknown_labels
from tasks.benchmarks import load_benchmark
from tasks.compare.figures import query_of
from tasks.compare.pairs import score_or
from tasks.config.job import Job
from tasks.measures import CONDITION, Row
from tasks.rules.errors import UsageError
from warehouse import Reader

_TABLE = ("split", "judge", "judge_trial", "grading", "judge_config_hash", "template_hash", "vintage")
"""What the comparisons of one table have in common; those under one breakdown are corrected together (Holm)."""
_PAIR = ("shared_model", "condition")
_STEPS = (
    "condition_members", "condition_pairs", "condition_values", "condition_figures", "condition_task_values",
    "condition_answers",
)  # fmt: skip
"""The views of `sql/staging/conditions/` that read the definitions, each after those that it reads."""
_VIEWS = ("condition_differences", "condition_criteria")


@dataclass(frozen=True)
class Changes:
    """What became of the criteria that both sides decided, in one comparison.

    Attributes:
        categories: by category the criteria compared, changed, gained and lost, and the points of these.
        gained: the criteria that raise the score by most points, the best first.
        lost: those that lower it by most, the worst first.
    """

    shared_model: str
    condition: str
    categories: tuple[Row, ...]
    gained: tuple[Row, ...]
    lost: tuple[Row, ...]


@dataclass(frozen=True)
class ConditionTable:
    """The comparisons on one task set under one judging in one vintage.

    Attributes:
        key: `split`, `judge` and the like.
        whole: a row of `condition_differences` for each comparison over the whole rubric.
        categories: the same for each category.
        changes: the criteria that changed, one for each comparison.
    """

    key: Row
    whole: tuple[Row, ...]
    categories: tuple[Row, ...]
    changes: tuple[Changes, ...]


@dataclass(frozen=True)
class ConditionsAnswer:
    """All tables, with the scores that they show and the conditions that cannot be compared yet."""

    definitions: Definitions
    score: str
    label_score: str
    tables: tuple[ConditionTable, ...]
    absent: tuple[tuple[str, str, str], ...]


def conditions(
    reader: Reader, job: Job, *, score: str | None, is_hard: bool, vintage: str | None, n_criteria: int
) -> ConditionsAnswer:
    """Each condition of each model beside its baseline, on the job's data-set revision.

    The configured conditions count, or the stored ones if the configuration has none. Tests that are not stored yet
    are computed; nothing is written.

    Raises:
        UsageError: there are no conditions, a label is unknown, or the benchmark has no such score.
    """
    definitions = _definitions(reader, job)
    models = job.named_models or ()
    known = sorted({*definitions, *(label for labels in definitions.values() for label in labels.values())})
    if unknown := sorted(set(models) - set(known)):
        raise UsageError(f"--model {unknown[0]}: no condition has it; known: {', '.join(known)}")
    benchmark = load_benchmark(job.settings.benchmark)
    fitting = (benchmark.primary_score, benchmark.criteria_score)
    whole, by_label = (score_or(each, score, benchmark).score_name for each in fitting)
    steps, given = _steps(reader, benchmark.name, definitions)
    rows = reader.rows(
        sql.with_steps(query_of("conditions"), steps),
        {
            **given, "benchmark": benchmark.name, "revision": job.data.revision, "is_hard": is_hard,
            "splits": list(job.settings.dataset.splits), "models": list(models),
            "judges": list(job.named_judges or ()), "vintage": vintage, "score": whole, "label_score": by_label,
        },
    )  # fmt: skip
    tables = []
    for key, of_key in groupby(rows, key=itemgetter(*_TABLE)):
        table = list(of_key)
        parts = {name: tuple(row for row in table if row["breakdown"] == name) for name in ("all", "category")}
        named = dict(zip(_TABLE, key, strict=True))
        asked = {**given, **named, "benchmark": benchmark.name, "revision": job.data.revision, "is_hard": is_hard}
        found = reader.rows(sql.with_steps(sql.read("questions/compare/conditions/criteria"), steps), asked)
        changes = tuple(_changes(row, found, n_criteria) for row in parts["all"])
        tables.append(ConditionTable(named, parts["all"], parts["category"], changes))
    return ConditionsAnswer(definitions, whole, by_label, tuple(tables), tuple(_absent(definitions, models, tables)))


def _definitions(reader: Reader, job: Job) -> Definitions:
    if "conditions" not in job.settings.model_fields_set:
        definitions = stored_conditions(reader, job.settings.benchmark)
    else:
        definitions = job.settings.conditions
        if wrong := unknown_labels(reader, job):
            raise UsageError("; ".join(wrong))
    if not definitions:
        raise UsageError(
            "no conditions are configured or stored: say under `conditions` which labels are one model, such as "
            "`conditions: {gpt-5: {baseline: gpt-5-plain, web search: gpt-5-search}}`"
        )
    return definitions


def _steps(reader: Reader, benchmark: str, definitions: Definitions) -> tuple[dict[str, str], dict[str, Any]]:
    """First steps that put these definitions, and tests that are not stored yet, in place of the stored ones."""
    records = [
        {"shared_model": name, "condition_names": list(labels), "condition_models": list(labels.values())}
        for name, labels in definitions.items()
    ]
    steps = {"condition_sets": sql.read("questions/compare/conditions/given")}
    steps |= {name: sql.read(f"staging/conditions/{name}") for name in _STEPS}
    given = {"conditions": json.dumps(records), "conditions_of": benchmark}
    fresh = [
        {name: value for name, value in row.items() if name not in {"note", "created_at"}}
        for row in CONDITION.fresh(reader, (steps, given), benchmark=benchmark)
    ]
    steps["condition_tests"] = sql.read("questions/compare/conditions/measures")
    steps["condition_measures"] = sql.read("staging/conditions/condition_measures")
    views = {name: sql.read(f"marts/conditions/{name}") for name in _VIEWS}
    return {**steps, **views}, {**given, "fresh": json.dumps(fresh)}


def _changes(row: Row, criteria: Sequence[Row], n_criteria: int) -> Changes:
    own = [each for each in criteria if all(each[name] == row[name] for name in _PAIR)]
    by_category = groupby(sorted(own, key=itemgetter("category")), key=itemgetter("category"))
    # They come with the largest loss first.
    lost = [each for each in own if each["points"] < 0]
    gained = sorted((each for each in own if each["points"] > 0), key=lambda each: -each["points"])
    counted = tuple(_counted(name, list(of_category)) for name, of_category in by_category)
    model, condition = (row[name] for name in _PAIR)
    return Changes(model, condition, counted, tuple(gained[:n_criteria]), tuple(lost[:n_criteria]))


def _counted(category: str, criteria: Sequence[Row]) -> Row:
    gains = [each["points"] for each in criteria if each["points"] > 0]
    losses = [each["points"] for each in criteria if each["points"] < 0]
    return {
        "category": category, "n_compared": len(criteria), "n_changed": sum(each["is_changed"] for each in criteria),
        "n_gained": len(gains), "n_lost": len(losses), "points_gained": sum(gains), "points_lost": sum(losses),
    }  # fmt: skip


def _absent(
    definitions: Definitions, models: Sequence[str], tables: Sequence[ConditionTable]
) -> Iterable[tuple[str, str, str]]:
    """The conditions (shared name, condition, label) of which no table has a comparison."""
    compared = {(row["shared_model"], row["condition"]) for table in tables for row in table.whole}
    for name, labels in definitions.items():
        for condition, label in list(labels.items())[1:]:
            is_asked_for = not models or name in models or label in models
            if is_asked_for and (name, condition) not in compared:
                yield name, condition, label
