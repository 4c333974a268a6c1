"""What `diff` and `conditions` show: tables for people, and everything for machines."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from flows.cli.leaderboard_table import is_worth_showing
from flows.cli.output import show_nothing, show_records, show_table
from tasks.compare.conditions import Changes, ConditionsAnswer, ConditionTable
from tasks.compare.differences import Answer, Difference, Flip, Flips, flips_of, short, with_explanations
from tasks.compare.sentences import (
    INTERVAL,
    decision,
    figure,
    interval_in_words,
    notes_on,
    p_value,
    sentence,
    small_note,
    table_of,
    where_in,
)
from tasks.config.job import Job
from tasks.rules.text.numbers import counted
from warehouse import Reader

_MOST_DETAILED = 2
"""Up to so many differences are all shown in detail; of more, only the first."""
_WORST_TASKS = 5


def show_diff(reader: Reader, answer: Answer, n_flips: int) -> None:
    """All differences, and what the first, or each of a few, consists of."""
    table = table_of(answer)
    show_table([name.lower() for name in table.columns], table.rows, n_least=table.columns.index(INTERVAL) + 1)
    for difference in answer.differences:
        click.echo(sentence(answer, difference))
    is_few = len(answer.differences) <= _MOST_DETAILED
    detailed = answer.differences if is_few else answer.differences[:1]
    for difference, flips in zip(detailed, flips_of(reader, answer.score, detailed), strict=True):
        _show_flips(answer, difference, flips, n_flips)
    if not is_few:
        click.echo(f"\n--json shows the flips of the other {len(answer.differences) - 1} comparisons.")
    for note in table.notes:
        click.echo(note)


def _show_flips(answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> None:
    first, second = short(answer.kind, difference.pair.first), short(answer.kind, difference.pair.second)
    n_lost = sum(flip.effect < 0 for flip in flips.flips)
    click.echo(
        f"\nFrom {first} to {second} on {difference.split}{where_in(answer, difference)}: {len(flips.flips)} of "
        f"{counted(flips.n_compared, 'criterion', 'criteria')} flipped, {n_lost} of them lower the score"
    )
    if flips.flips:
        show_table(
            ["category", "criteria", "raise the score", "lower the score", "contribution"],
            [[c.category, c.n_criteria, c.n_gained, c.n_lost, f"{c.contribution:+.4f}"] for c in flips.categories],
            title="Contribution of each category to the difference",
        )
        worst = [task for task in flips.tasks if task.difference][:_WORST_TASKS]
        show_table(
            ["task", "first", "second", "difference", "raise the score", "lower the score"],
            [[t.task_id, f"{t.first:.3f}", f"{t.second:.3f}", f"{t.difference:+.3f}", t.n_gained, t.n_lost]
             for t in worst],
            title="Tasks, largest loss first",
        )  # fmt: skip
    if flips.flips and n_flips:
        shown = flips.flips[:n_flips]
        show_table(
            ["title", "category", "weight", "first", "second", "effect", "task"],
            [[f.title, f.category, f.weight, decision(f.first_by_trial), decision(f.second_by_trial),
              f"{f.effect:+.3f}", f.task_id] for f in shown],
            title=f"Flipped criteria, {len(shown)} of {len(flips.flips)}, largest loss first",
        )  # fmt: skip
    for note in notes_on(flips, difference):
        click.echo(note)


def diff_as_json(reader: Reader, answer: Answer, n_flips: int) -> dict[str, Any]:
    """Everything that is known of the differences."""
    taken_apart = zip(answer.differences, flips_of(reader, answer.score, answer.differences), strict=True)
    comparisons = [_comparison(reader, answer, difference, flips, n_flips) for difference, flips in taken_apart]
    return {"of": answer.kind, "score": answer.score, "comparisons": comparisons, "notes": list(answer.notes)}


_COUNTS = ("n_criteria", "n_compared", "n_undecided", "n_left_out", "n_in_one")


def _comparison(reader: Reader, answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> dict[str, Any]:
    pair = difference.pair
    sides = {
        place: {"name": side.name} | {k: v for k, v in asdict(side.model_run).items() if k != "model_run_id"}
        for place, side in (("first", pair.first), ("second", pair.second))
    }
    return {
        **sides, **{name: getattr(difference, name) for name in ("split", "first_mean", "second_mean")},
        "n_tasks_wanted": difference.n_wanted, **asdict(difference.paired),
        **{name: getattr(difference, name) for name in ("p_adjusted", "is_significant")},
        "sentence": sentence(answer, difference), **{name: getattr(flips, name) for name in _COUNTS},
        "n_flips": len(flips.flips), "explained": flips.explained,
        "categories": [*map(asdict, flips.categories)], "tasks": [*map(asdict, flips.tasks)],
        "flips": [_flip(flip) for flip in with_explanations(reader, pair, flips.flips[:n_flips])],
        "notes": [*difference.notes, *notes_on(flips, difference)],
    }  # fmt: skip


def _flip(flip: Flip) -> dict[str, Any]:
    record = {name: value for name, value in asdict(flip).items() if name not in {"explanations", "first_criterion_id"}}
    first, second = flip.explanations
    return record | {"first_explanations": list(first), "second_explanations": list(second)}


Row = Mapping[str, Any]
_MEANS = {
    "letters and digits": ("mean_chars_alnum", ",.0f"),
    "tokens": ("mean_completion_tokens", ",.0f"),
    "cost in USD": ("mean_cost_usd", ",.4g"),
    "seconds": ("mean_latency_s", ",.1f"),
}
"""What is shown of responses: a heading -> the column, and how its values are written."""


def show_conditions(job: Job, answer: ConditionsAnswer) -> None:
    """All tables, and the notes on them."""
    if not answer.tables:
        show_nothing(job, "No two conditions of a model have been judged in this selection yet.")
    several = {name for name in ("judge_trial", "grading", "judge_config_hash", "template_hash", "vintage")
               if is_worth_showing(name, [table.key for table in answer.tables])}  # fmt: skip
    for table in answer.tables:
        where = _where(table, several)
        _show_differences(f"Whole rubric, {answer.score}: {where}", table.whole)
        if table.categories:
            _show_differences(f"By category, {answer.label_score}: {where}", table.categories)
        _show_responses(f"Mean response, baseline → condition: {where}", table.whole)
        _show_changes(where, table.changes)
    for note in _condition_notes(answer):
        click.echo(note)


def _where(table: ConditionTable, several: set[str]) -> str:
    """The split and the judge of a table, and what distinguishes it from others."""
    key = table.key
    further = "".join(f", {name.removesuffix('_hash').replace('_', ' ')} {str(key[name])[:12]}" for name in key
                      if name in several)  # fmt: skip
    return f"{key['split']}, judge {key['judge']}{further}"


def _show_differences(title: str, rows: Sequence[Row]) -> None:
    groups = [(row["shared_model"], row["condition"]) for row in rows]
    show_records([
        {
            "model": row["shared_model"], "condition": row["condition"], "compared with": row["baseline"],
            "category": row["label"] or None, "difference": _written(row["difference"], "+z.3f"),
            INTERVAL: interval_in_words(row["ci_low"], row["ci_high"], row["p_value"], is_small=row["is_small"],
                                        differ=row["n_differing"] or row["difference"])
            if row["n_tasks"] else "no task is complete on both sides",
            "p": p_value(row["p_value"]), "p corrected": p_value(row["p_holm"]), "significant": row["is_significant"],
            "tasks": f"{row['n_tasks']} of {row['n_tasks_wanted']}",
            "baseline mean": _written(row["baseline_mean_score"], "z.3f"), "mean": _written(row["mean_score"], "z.3f"),
            "smallest detectable difference": figure(row["smallest_detectable"]),
        }
        for row in rows
    ], title, needed=INTERVAL, groups=groups if rows[0]["breakdown"] == "category" else ())  # fmt: skip


def _written(value: float | None, form: str) -> str | None:
    return None if value is None else format(value, form)


def _show_responses(title: str, rows: Sequence[Row]) -> None:
    show_records([
        {
            "model": row["shared_model"], "condition": row["condition"],
            **{name: _change(row, column, form) for name, (column, form) in _MEANS.items()},
            "failed": f"{row['baseline_n_failed']} of {row['baseline_n_answers']} → "
            f"{row['n_failed']} of {row['n_answers']}",
        }
        for row in rows
    ], title)  # fmt: skip


def _change(row: Row, column: str, form: str) -> str | None:
    """A mean of the baseline, that of the condition, and the second by the first."""
    before, after = row[f"baseline_{column}"], row[column]
    if before is None or after is None:
        return None
    ratio = f" (× {after / before:.2f})" if before else ""
    return f"{before:{form}} → {after:{form}}{ratio}"


def _points(value: float) -> str:
    return f"{value:+g}" if value else "0"


def _show_changes(where: str, changes: Sequence[Changes]) -> None:
    show_table(
        ["model", "condition", "category", "criteria", "changed", "gain points", "lose points", "points gained",
         "points lost"],
        [[each.shared_model, each.condition, c["category"], c["n_compared"], c["n_changed"], c["n_gained"],
          c["n_lost"], _points(c["points_gained"]), _points(c["points_lost"])]
         for each in changes for c in each.categories],
        title=f"Changed criteria: {where}",
        groups=[(each.shared_model, each.condition) for each in changes for _ in each.categories],
    )  # fmt: skip
    for each in changes:
        shown = [*each.gained, *each.lost]
        if shown:
            show_table(
                ["points", "title", "category", "baseline", "condition", "task"],
                [[_points(c["points"]), c["title"], c["category"], decision(c["baseline_by_trial"]),
                  decision(c["by_trial"]), c["task_id"]] for c in shown],
                title=f"{each.shared_model}, {each.condition}: criteria that gain and lose most points",
            )  # fmt: skip


FAMILY = (
    "“p corrected” (Holm) takes all comparisons over the whole rubric into account that have the same split, judge and "
    "vintage; of categories all comparisons by category, of all models and conditions."
)
_ONE_TRIAL = (
    "One trial: intervals and tests say what other tasks of the same kind would show, not what another run on the same "
    "tasks would; `trials` above 1 averages over runs."
)


def _condition_notes(answer: ConditionsAnswer) -> list[str]:
    """Notes on the figures, one line each."""
    return [*_on_figures(answer), *_on_responses(answer), *_on_absent(answer)]


def _on_figures(answer: ConditionsAnswer) -> Iterator[str]:
    from tasks.rules.statistics.intervals import FEWEST_OTHERS

    rows = [row for table in answer.tables for row in (*table.whole, *table.categories)]
    if any(row["ci_low"] is not None and row["is_small"] for row in rows):
        yield small_note()
    if any(row["n_tasks"] and row["p_value"] is None for row in rows):
        yield f"No interval and no test: fewer than {FEWEST_OTHERS} tasks differ."
    if any(row["p_value"] is not None for row in rows):
        yield f"Intervals, p and smallest detectable differences (power 80 %) are for each comparison alone. {FAMILY}"
    if any((row[name] or 0.0) < 0 for row in rows for name in ("baseline_mean_score", "mean_score")):
        yield "Means are before any clipping; the leaderboard may show a mean below 0 as 0."
    if any(1 in {row["n_trials"], row["baseline_n_trials"]} for row in rows):
        yield _ONE_TRIAL


def _on_responses(answer: ConditionsAnswer) -> Iterator[str]:
    rows = [row for table in answer.tables for row in table.whole]
    if any(row["n_unpriced"] or row["baseline_n_unpriced"] for row in rows):
        is_known = any(row["mean_cost_usd"] is not None for row in rows)
        yield (
            "Tasks with a response of unknown price are left out of both mean costs."
            if is_known
            else "No cost is shown: no task has known prices on both sides."
        )
    if any(row["n_failed"] or row["baseline_n_failed"] for row in rows):
        yield "A failed response has no score: its trial counts for neither side's mean, and is counted as failed."


def _on_absent(answer: ConditionsAnswer) -> Iterator[str]:
    for name, condition, label in answer.absent:
        baseline = next(iter(answer.definitions[name]))
        yield (
            f"{name}, {condition} ({label}): no verdicts in this selection under a judge that also judged its "
            f"{baseline!r} ({answer.definitions[name][baseline]}) in the same vintage."
        )


def conditions_as_json(answer: ConditionsAnswer) -> dict[str, Any]:
    """Everything that is known of the comparisons: a list of tables, each with its rows and the changed criteria."""
    return {
        "conditions": {name: dict(labels) for name, labels in answer.definitions.items()},
        "score": answer.score, "label_score": answer.label_score, "family": FAMILY,
        "tables": [
            table.key | {"differences": [*table.whole, *table.categories], "changes": [*map(asdict, table.changes)]}
            for table in answer.tables
        ],
        "notes": _condition_notes(answer),
    }  # fmt: skip
