"""Comparisons of two models, judges, runs and others: the differences, and the criteria that flipped."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby, islice
from typing import Any

from tasks.compare.differences import Answer, Difference, Flips, compare, flips_of, short, with_explanations
from tasks.compare.pairs import question_of
from tasks.compare.sentences import decision, n_unequal, notes_on, notes_on_all, sentence, where_in, why_no_interval
from tasks.figures.columns import Row, Rows, columns, ends
from tasks.figures.figure import Figure
from tasks.figures.scope import Scope, task_address
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted

_SIDES = columns("first second where split")
_MOST_DETAILED, _WORST_TASKS = 2, 5
"""So many comparisons are all taken apart in tables, of more only the first; and so many tasks are listed of each."""
Compared = tuple[Answer, list[Flips]]
Found = dict[str, Any]


def compared(scope: Scope, given: Mapping[str, Any]) -> Compared:
    """The differences that are asked for, with the flips of each; several figures show them.

    Raises:
        UsageError: the names or options do not say what to compare.
        PipelineError: there is nothing to compare.
    """
    if len(given["names"]) < 2:
        raise UsageError("give at least two names to compare, such as two models")

    def found() -> Compared:
        question = question_of(
            scope.job, given["names"], given["of"], score=scope.score, is_hard=scope.is_hard, vintage=scope.vintage
        )
        answer = compare(scope.reader, question)
        return answer, flips_of(scope.reader, answer.score, answer.differences)

    result: Compared = scope.once(("compared", *given["names"], given["of"]), found)
    return result


def difference_rows(answer: Answer, flips: list[Flips]) -> list[Found]:
    """A row for each difference, and what its flips say of it."""
    return [
        _sides(answer, each)
        | {
            "difference": each.difference, "ci_low": each.paired.ci_low, "ci_high": each.paired.ci_high,
            "is_small": each.paired.ci_low is not None and each.paired.is_small,
            "no_interval": why_no_interval(each), "p_value": each.paired.p_value, "p_adjusted": each.p_adjusted,
            "is_significant": each.is_significant, "n_tasks": each.paired.n_tasks, "n_tasks_wanted": each.n_wanted,
            "n_differing": n_unequal(each), "smallest_detectable": each.paired.smallest_detectable,
            "first_mean": each.first_mean, "second_mean": each.second_mean,
            "n_flips": len(of_each.flips), "n_flips_lost": sum(flip.effect < 0 for flip in of_each.flips),
            "n_compared": of_each.n_compared, "n_criteria": of_each.n_criteria, "n_undecided": of_each.n_undecided,
            "n_left_out": of_each.n_left_out, "n_in_one": of_each.n_in_one, "explained": of_each.explained,
            "score_name": answer.score, "kind": answer.kind, "sentence": sentence(answer, each),
            "notes": [*each.notes, *notes_on(of_each, each)], "notes_on_all": notes_on_all(answer),
        }
        | {
            f"{side}_{name}": value
            for side, of_side in (("first", each.pair.first), ("second", each.pair.second))
            for name, value in asdict(of_side.model_run).items()
            if name != "model_run_id"
        }
        for each, of_each in zip(answer.differences, flips, strict=True)
    ]  # fmt: skip


def flip_rows(scope: Scope, answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> Iterator[Found]:
    """A row for each of the worst flips of a difference, with the decisions and reasons of both sides."""
    runs = [
        {name: getattr(side.model_run, name) for name in ("model", "model_config_hash", "vintage")}
        for side in (difference.pair.first, difference.pair.second)
    ]
    for flip in with_explanations(scope.reader, difference.pair, flips.flips[:n_flips]):
        yield _sides(answer, difference) | {
            "title": flip.title, "category": flip.category, "weight": flip.weight,
            "first_decision": decision(flip.first_by_trial), "second_decision": decision(flip.second_by_trial),
            "effect": flip.effect, "task_id": flip.task_id, "criterion_id": flip.criterion_id,
            "first_value": flip.first_value, "second_value": flip.second_value,
            "first_by_trial": list(flip.first_by_trial), "second_by_trial": list(flip.second_by_trial),
            "first_explanations": list(flip.explanations[0]), "second_explanations": list(flip.explanations[1]),
            "address": task_address(flip.task_id, runs[0], runs[1] if runs[1] != runs[0] else None, flip.criterion_id),
        }  # fmt: skip


def _sides(answer: Answer, difference: Difference) -> Found:
    first, second = (short(answer.kind, side) for side in (difference.pair.first, difference.pair.second))
    where = where_in(answer, difference).removeprefix(", ")
    return {"first": first, "second": second, "where": where or None, "split": difference.split}


Apart = Callable[[Scope, Answer, Difference, Flips, Mapping[str, Any]], Iterator[Found]]


def _taken_apart(rows_of: Apart) -> Callable[[Scope, Mapping[str, Any]], list[Found]]:
    """A function that gives the rows of all differences, one after the other."""

    def rows(scope: Scope, given: Mapping[str, Any]) -> list[Found]:
        answer, flips = compared(scope, given)
        return [
            row
            for difference, of_each in zip(answer.differences, flips, strict=True)
            for row in rows_of(scope, answer, difference, of_each, given)
        ]

    return rows


def _categories(_: Scope, answer: Answer, difference: Difference, flips: Flips, __: Any) -> Iterator[Found]:
    yield from (_sides(answer, difference) | asdict(each) for each in flips.categories if flips.flips)


def _tasks(_: Scope, answer: Answer, difference: Difference, flips: Flips, __: Any) -> Iterator[Found]:
    for each in flips.tasks:
        scores = {"task_id": each.task_id, "first_score": each.first, "second_score": each.second}
        rest = {name: getattr(each, name) for name in ("difference", "n_gained", "n_lost")}
        yield _sides(answer, difference) | scores | rest


def _sentences(rows: Rows) -> list[str]:
    """What each difference says, and what must be known of it."""
    splits = {row["split"] for row in rows}
    notes = [
        note if splits == {other["split"] for other in rows if note in other["notes"]} else f"{row['split']}: {note}"
        for row in rows
        for note in row["notes"]
    ]
    said = [
        f"{row['sentence']}; {row['n_flips']} of {counted(row['n_compared'], 'criterion', 'criteria')} flipped, "
        f"{row['n_flips_lost']} of them lower the score"
        for row in rows
    ]
    return list(dict.fromkeys([*said, *rows[0]["notes_on_all"], *notes]))


def _detailed(rows: Rows) -> list[Row]:
    """The rows of a few comparisons, or else those of the first."""
    shown = list(dict.fromkeys(_key(row) for row in rows))
    kept = shown if len(shown) <= _MOST_DETAILED else shown[:1]
    return [row for row in rows if _key(row) in kept]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[column.name] for column in _SIDES)


def _worst(rows: Rows) -> list[Row]:
    """Of each comparison the tasks that lose most."""
    return [
        row
        for _, of_one in groupby(_detailed(rows), _key)
        for row in islice((row for row in of_one if row["difference"]), _WORST_TASKS)
    ]


def _others(rows: Rows) -> list[str]:
    n_others = len({_key(row) for row in rows}) - len({_key(row) for row in _detailed(rows)})
    return [f"Only of the first; --json shows the other {counted(n_others, 'comparison')} too."] if n_others else []


_GIVEN: dict[str, Any] = {"names": (), "of": None}
DIFF = Figure(
    "diff",
    "Differences",
    "Second mean minus first mean on the tasks that are complete on both sides, with its 95 % interval for other "
    "tasks of the same kind. The corrected p-value takes all differences shown into account (Holm); the smallest "
    "detectable difference is what one comparison finds with a power of 80 %.",
    (
        *_SIDES, *columns("difference"), *ends("ci"), *columns(
            "is_small no_interval p_value p_adjusted is_significant n_tasks n_tasks_wanted smallest_detectable "
            "first_mean second_mean"
        ),
        *columns("n_compared n_flips n_flips_lost", n_compared="Criteria: compared"),
    ),
    compute=lambda scope, given: difference_rows(*compared(scope, given)),
    given=_GIVEN,
    is_table=True,
    notes=_sentences,
)  # fmt: skip
FLIPPED = (
    Figure(
        "diff_categories",
        "Contribution of each category to the difference",
        "What the criteria that flipped add to the difference, by category, largest loss first.",
        (*_SIDES, *columns("category n_criteria"),
         *columns("n_gained n_lost", "Flips", n_gained="raise the score", n_lost="lower the score"),
         *columns("contribution")),
        compute=_taken_apart(_categories),
        given=_GIVEN,
        is_table=True,
        listed=_detailed,
        notes=_others,
    ),
    Figure(
        "diff_tasks",
        "Tasks, largest loss first",
        "The score of each task on both sides, and how many of its criteria flipped.",
        (*_SIDES, *columns("task_id first_score second_score difference"),
         *columns("n_gained n_lost", "Flips", n_gained="raise the score", n_lost="lower the score")),
        compute=_taken_apart(_tasks),
        given=_GIVEN,
        is_table=True,
        listed=_worst,
    ),
    Figure(
        "diff_flips",
        "Flipped criteria, largest loss first",
        "Criteria that both sides decided, and not alike; the effect is what the change is worth to the task's score.",
        columns("first second where split title category weight first_decision second_decision effect task_id"),
        compute=_taken_apart(lambda scope, answer, difference, flips, given: flip_rows(
            scope, answer, difference, flips, given["n_flips"])),
        given={**_GIVEN, "n_flips": 10},
        is_table=True,
        listed=_detailed,
    ),
)  # fmt: skip
