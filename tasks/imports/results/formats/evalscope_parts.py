"""Subsets that repeat tasks: EvalScope asks for each again, and counts the repetitions of each from 0."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from tasks.imports.files import ImportRefused
from tasks.imports.results.records import Answer, Grading

Said = tuple[Hashable, ...]
_MOST_OF_TASK = 1000
"""Each is compared with those before it."""


def told_apart(answers: Iterable[tuple[str, Answer]]) -> list[Answer]:
    """Answers of runs, in the order of their parts, with the trials that they are over all parts of their run.

    An answer of a further part that says the same as one of another part is that response (of several, the one with
    its own number), one that says something else is a further trial of it. A judge who decided otherwise on the same
    response judged it once more.
    """
    by_task: dict[Hashable, list[Answer]] = defaultdict(list)
    found = []
    for run, answer in answers:
        known = by_task[run, answer.model, answer.task_id, tuple(answer.messages or ())]
        if len(known) == _MOST_OF_TASK:
            raise ImportRefused(f"{answer.where}: more than {_MOST_OF_TASK:,} responses to one task; split the folder")
        placed = _placed(answer, known)
        known.append(placed)
        found.append(placed)
    return found


def _placed(answer: Answer, known: Sequence[Answer]) -> Answer:
    elsewhere = [each for each in known if each.group != answer.group]
    if not elsewhere:
        return answer
    taken = {each.trial for each in known if each.group == answer.group}
    same = [each.trial for each in elsewhere if _said(each) == _said(answer) and each.trial not in taken]
    if not same:
        return replace(answer, trial=1 + max(each.trial or 0 for each in known))
    trial = answer.trial if answer.trial in same else same[0]
    before = [grading for each in known if each.trial == trial for grading in each.gradings]
    gradings: list[Grading] = []
    for grading in answer.gradings:
        gradings.append(_judged(grading, [*before, *gradings]))
    return replace(answer, trial=trial, gradings=gradings)


def _said(answer: Answer) -> Said:
    return answer.text, answer.status


def _judged(grading: Grading, before: Sequence[Grading]) -> Grading:
    """A grading with its number among those of the same judge, which may have decided the same before."""
    of_judge = [each for each in before if each.judge == grading.judge]
    numbers = {each.judge_trial for each in of_judge}
    same = [each.judge_trial for each in of_judge if _decided(each) == _decided(grading)]
    if grading.judge_trial not in numbers or grading.judge_trial in same:
        return grading
    return replace(grading, judge_trial=same[0] if same else 1 + max(numbers))


def _decided(grading: Grading) -> Said:
    return tuple((each.criterion, each.position, each.value) for each in grading.decisions)
