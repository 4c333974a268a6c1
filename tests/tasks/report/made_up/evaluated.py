"""What a made-up warehouse holds, counted and averaged in plain Python: the oracle of the report's queries.

Nothing here asks a mart: figures are derived from the stored responses, verdicts, criteria and tasks.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from statistics import fmean
from typing import Any

from tasks.report.content.edition import Edition

Row = dict[str, Any]
_JUDGING = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
_ENTRY = ("model", "model_config_hash", "vintage")
Part = Callable[[Row], bool]
"""Which criteria of a rubric are meant."""


def whole(_: Row) -> bool:
    """All of them."""
    return True


class Evaluated:
    """The stored rows of an edition, by what they belong to."""

    def __init__(self, edition: Edition) -> None:
        self.edition = edition
        self.tasks = {each["task_id"]: each for each in self.stored("task_rows")}
        self.refused = {each["task_id"] for each in self.stored("refusals")}
        self.splits = _grouped(self.stored("split_members"), "split")
        self.rubrics = _grouped(self.stored("criteria"), "task_id")
        self.answers = _grouped(self.stored("responses"), *_ENTRY)
        self.decisions: dict[tuple[Any, ...], dict[str, Row]] = defaultdict(dict)
        for each in self.stored("verdicts"):
            judging = tuple(each[name] for name in _JUDGING)
            self.decisions[*judging, each["response_id"]][each["criterion_id"]] = each

    def stored(self, table_name: str) -> list[Row]:
        """The rows of a stored table that are of the edition's revision."""
        return self.edition.reader.rows(f"from {table_name} where dataset_revision = ?", [self.edition.revision])

    @cached_property
    def judgings(self) -> dict[str, tuple[Any, ...]]:
        """Label -> judging."""
        return {each["judging"]: tuple(each[name] for name in _JUDGING) for each in self.edition.judgings}

    @cached_property
    def made_here(self) -> set[tuple[Any, ...]]:
        """The judgings of which any verdict was not imported."""
        return {
            key[:-1]
            for key, decided in self.decisions.items()
            if any(each["source"] != "imported" for each in decided.values())
        }

    @cached_property
    def entries(self) -> dict[str, tuple[Any, ...]]:
        """Label -> model with its configuration and vintage."""
        return {each["entry"]: tuple(each[name] for name in _ENTRY) for each in self.edition.entries}

    def tasks_of(self, split: str) -> list[Row]:
        """The admitted tasks of a split."""
        return [self.tasks[each["task_id"]] for each in self.splits[split,] if each["task_id"] not in self.refused]

    def judged(self, judging: str, entry: str) -> dict[str, list[Row]]:
        """Task -> its answers in all trials that were sampled, or, where people judge, in those that they began."""
        answers = self.answers[self.entries[entry]]
        wants_all = self.judgings[judging] in self.made_here
        trials = {
            each["trial"]
            for each in answers
            if each["task_id"] not in self.refused and (wants_all or self.verdicts(judging, each))
        }
        found: dict[str, list[Row]] = defaultdict(list)
        for each in answers:
            if each["trial"] in trials:
                found[each["task_id"]].append(each)
        return found

    def verdicts(self, judging: str, answer: Row) -> dict[str, Row]:
        """Criterion -> the judge's verdict on it."""
        return self.decisions.get((*self.judgings[judging], answer["response_id"]), {})

    def value(self, judging: str, answer: Row, part: Part = whole, *, is_normalised: bool = False) -> float | None:
        """Equation 1, or 3, over a part of the rubric; None unless all of it is decided."""
        of_part = [each for each in self.rubrics[answer["task_id"],] if part(each)]
        verdicts = self.verdicts(judging, answer)
        values = [verdicts.get(each["criterion_id"], {}).get("value") for each in of_part]
        if None in values:
            return None
        points = sum(each["weight"] * value for each, value in zip(of_part, values, strict=True))
        positive, negative = (sum(each["weight"] for each in of_part if sign * each["weight"] > 0) for sign in (1, -1))
        return (points - negative) / (positive - negative) if is_normalised else points / positive

    def task_means(
        self, judging: str, entry: str, tasks: Iterable[Row], part: Part = whole, *, is_normalised: bool = False
    ) -> dict[str, float]:
        """Task -> the mean over the trials that are decided; only tasks with such a trial."""
        judged = self.judged(judging, entry)
        found = {}
        for task in tasks:
            if any(part(each) for each in self.rubrics[task["task_id"],]):
                values = [
                    self.value(judging, each, part, is_normalised=is_normalised) for each in judged[task["task_id"]]
                ]
                if decided := [value for value in values if value is not None]:
                    found[task["task_id"]] = fmean(decided)
        return found

    def met(self, judging: str, entry: str, tasks: Iterable[Row], part: Part) -> list[list[float]]:
        """The decisions on a part of the rubric, answer by answer; only of answers that are decided on all of it."""
        judged, tasks = self.judged(judging, entry), list(tasks)
        complete = self.task_means(judging, entry, tasks, part, is_normalised=True)
        return [
            [
                self.verdicts(judging, answer)[each["criterion_id"]]["value"]
                for each in self.rubrics[task,]
                if part(each)
            ]
            for task in complete
            for answer in judged[task]
            if self.value(judging, answer, part, is_normalised=True) is not None
        ]


def _grouped(rows: Iterable[Row], *columns: str) -> Mapping[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for each in rows:
        found[tuple(each[name] for name in columns)].append(each)
    return found
