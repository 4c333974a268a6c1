"""A made-up warehouse with labels, and its debiased scores computed again, without the project's
rules and SQL.
"""

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from tests.kit import admitted, criterion, response, row, verdict

Row = dict[str, Any]
Cell = tuple[str, str, int, int]
"""Task, model, trial, and position of the criterion."""
CATEGORIES = ("Practical Utility", "Financial Accuracy")
LOST = ("t3", "ada", 2)
"""A trial with a failed verdict: no score includes it."""


class LabelledWorld:
    """Two models in two trials on 60 tasks, a judge of all responses, two sheets, and a later label
    that no sheet drew.

    The first sheet lacks labels in a few rows; the second was drawn with its labels. One model's
    sheet is larger.
    """

    def __init__(self, seed: int, n_tasks: int = 60, n_criteria: int = 6) -> None:
        dice = random.Random(seed)
        self.tasks = [f"t{i}" for i in range(n_tasks)]
        # The first criterion is positive, so that every task has a score; every sixth task has a
        # negative one.
        self.criteria = {
            task: [
                criterion(
                    task,
                    i,
                    -4.0 if i == 5 and number % 3 == 0 else float(dice.randint(1, 10)),
                    CATEGORIES[i % 2],
                )
                for i in range(n_criteria)
            ]
            for number, task in enumerate(self.tasks)
        }
        self.cells: list[Cell] = [
            (task, model, trial, i)
            for task in self.tasks
            for model in ("ada", "bob")
            for trial in (1, 2)
            for i in range(n_criteria)
        ]
        self.truth = {
            cell: float(dice.random() < (0.7 if cell[1] == "ada" else 0.5)) for cell in self.cells
        }
        self.judge = {
            cell: value if dice.random() < 0.8 else 1.0 - value
            for cell, value in self.truth.items()
        }
        sampled = dice.sample(self.cells, 520)
        self.first = {cell: 0.2 + 0.2 * dice.random() for cell in sampled[:340]}
        empty = set(sampled[:8])
        filled = [cell for cell in self.first if cell not in empty]
        self.decided: dict[str, dict[Cell, float]] = {
            "eva": {cell: self.truth[cell] for cell in filled}
        }
        self.decided["ben"] = {
            cell: value if dice.random() < 0.8 else 1.0 - value
            for cell, value in self.decided["eva"].items()
            if dice.random() < 0.4
        }
        self.known = list(self.decided["eva"])
        self.second = {cell: 0.15 + 0.1 * dice.random() for cell in sampled[340:519]}
        self.decided["eva"] |= {cell: self.truth[cell] for cell in self.second}
        self.unsampled = sampled[519]
        self.decided["eva"][self.unsampled] = 1.0 - self.judge[self.unsampled]

    def tables(self) -> Mapping[str, list[Row]]:
        responses = {cell[:3]: response(cell[0], cell[1], cell[2]) for cell in self.cells}
        labels = [
            verdict(
                responses[cell[:3]],
                self.criteria[cell[0]][cell[3]],
                value,
                judge=person,
                source="imported",
                judge_config_hash="imported",
                template_hash="imported",
                import_batch="b",
            )
            for person, decided in self.decided.items()
            for cell, value in decided.items()
        ]
        judged = [
            verdict(
                responses[cell[:3]],
                self.criteria[cell[0]][cell[3]],
                None if cell[:3] == LOST and cell[3] == 0 else value,
                probability=_probability(cell, value),
            )
            for cell, value in self.judge.items()
        ]
        sheets = [("s1", self.first, []), ("s2", self.second, self.known)]
        return {
            **admitted(self.tasks),
            "criteria": [each for of_task in self.criteria.values() for each in of_task],
            "responses": list(responses.values()),
            "verdicts": [*judged, *labels],
            "labellers": [
                row("labellers", judge=person, import_batch="b") for person in self.decided
            ],
            "label_sheets": [
                row(
                    "label_sheets",
                    sheet_id=name,
                    covered_breakdown="all",
                    covered_label="",
                    n_drawn=len(sampled),
                    covered_responses=[each["response_id"] for each in responses.values()],
                    n_population=len(self.cells) - len(known),
                )
                for name, sampled, known in sheets
            ],
            "label_draws": [
                row(
                    "label_draws",
                    sheet_id=name,
                    task_id=cell[0],
                    probability=sampled.get(cell, 1.0),
                    response_id=responses[cell[:3]]["response_id"],
                    is_known=cell not in sampled,
                    criterion_id=self.criteria[cell[0]][cell[3]]["criterion_id"],
                    criterion_hash=self.criteria[cell[0]][cell[3]]["content_hash"],
                )
                for name, sampled, known in sheets
                for cell in (*sampled, *known)
            ],
        }

    def labels(self) -> dict[Cell, tuple[float, float]]:
        """Each sampled label (the mean of people's decisions) with the number of verdicts that it
        represents.
        """
        decisions: dict[Cell, list[float]] = defaultdict(list)
        for decided in self.decided.values():
            for cell, value in decided.items():
                decisions[cell].append(value)
        share = sum(cell in decisions for cell in self.first) / len(self.first)
        n = len(self.cells)
        weights = (share * len(self.first) / n, len(self.second) / (n - len(self.known)))
        result = {}
        for cell, values in decisions.items():
            first = 1.0 / (self.first[cell] * share) if cell in self.first else 0.0
            second = (
                1.0
                if cell in self.known
                else 1.0 / self.second[cell]
                if cell in self.second
                else 0.0
            )
            factor = (weights[0] * first + weights[1] * second) / sum(weights)
            if factor:
                result[cell] = (sum(values) / len(values), factor)
        return result

    def expected(
        self, model: str, score: str = "score", category: str | None = None
    ) -> dict[str, float]:
        """A model's debiased figure by column, computed as the README says."""
        figure = _Figure(self, model, score, category)
        debiased = figure.estimate(uses_judge=True)
        alone = figure.estimate(uses_judge=False)
        names = (
            "debiased",
            "debiased_ci_low",
            "debiased_ci_high",
            "judge_power",
            "effective_labels",
            "labels_alone",
            "labels_alone_ci_low",
            "labels_alone_ci_high",
        )
        result = {"judge_score": figure.mean(figure.judged), "n_labels": len(figure.labels)}
        result["n_tasks_labelled"] = len({cell[0] for cell in figure.labels})
        if score == "score" and category is None:
            result["expected_score"] = figure.mean(figure.likely)
            result["expected_difference"] = result["expected_score"] - debiased[0]
        return result | dict(zip(names, (*debiased, *alone[:3]), strict=True))


def without_labels_on(
    tables: Mapping[str, list[Row]], models: set[str], positions: set[int]
) -> dict[str, list[Row]]:
    """The tables without the labels on these models and on the criteria at these positions."""
    return {
        **tables,
        "verdicts": [
            each
            for each in tables["verdicts"]
            if each["source"] != "imported"
            or (
                each["model"] not in models
                and int(each["criterion_id"].rsplit("-c", 1)[1]) not in positions
            )
        ],
    }


def _probability(cell: Cell, value: float) -> float:
    """The judge's probability that a criterion is met, consistent with its decision."""
    return value + (1 - 2 * value) * (0.05 + 0.1 * (cell[3] % 4))


class _Figure:
    """One model's figure: the values of its tasks, and its labels."""

    def __init__(self, world: LabelledWorld, model: str, score: str, category: str | None) -> None:
        self.offset, self.positive, self.negative, self.judged, self.likely = ({} for _ in range(5))  # type: dict[str, float]
        self.contribution: dict[Cell, float] = {}
        for task in world.tasks:
            used = [
                i for i, c in enumerate(world.criteria[task]) if category in {None, c["category"]}
            ]
            weight = [world.criteria[task][i]["weight"] for i in used]
            plus = sum(w for w in weight if w > 0)
            minus = sum(w for w in weight if w < 0)
            divisor = plus if score == "score" else plus - minus
            trials = [trial for trial in (1, 2) if (task, model, trial) != LOST or 0 not in used]
            self.offset[task] = 0.0 if score == "score" else -minus / divisor
            self.positive[task] = plus / divisor
            self.negative[task] = minus / divisor
            self.judged[task] = self.likely[task] = self.offset[task]
            for trial in trials:
                for i, w in zip(used, weight, strict=True):
                    cell = (task, model, trial, i)
                    self.contribution[cell] = w / divisor / len(trials)
                    self.judged[task] += self.contribution[cell] * world.judge[cell]
                    self.likely[task] += self.contribution[cell] * _probability(
                        cell, world.judge[cell]
                    )
        self.labels = {
            cell: result for cell, result in world.labels().items() if cell in self.contribution
        }
        self.judge = world.judge

    @staticmethod
    def mean(values: Mapping[str, float]) -> float:
        return math.fsum(values.values()) / len(values)

    def estimate(self, *, uses_judge: bool) -> tuple[float, float, float, float, float]:
        """Mean, interval, the judge's power, and effective labels."""
        cells = list(self.labels)
        weight = [self._importance(cell) for cell in cells]
        n_negative = sum(self.contribution[cell] < 0 for cell in cells)
        is_split = min(n_negative, len(cells) - n_negative) >= 10
        positive = [float(self.contribution[cell] >= 0) for cell in cells]
        signs = [[each, 1.0 - each] if is_split else [1.0] for each in positive]
        with_judge = [[*x, self.judge[cell]] for x, cell in zip(signs, cells, strict=True)]
        label = [self.labels[cell][0] for cell in cells]
        power = min(max(_fit(with_judge, label, weight)[-1], 0.0), 1.0) if uses_judge else 0.0
        rest = [y - power * self.judge[cell] for y, cell in zip(label, cells, strict=True)]
        constants = _fit(signs, rest, weight)
        design = with_judge if power > 0 else signs
        residual = [
            r - sum(a * b for a, b in zip(x, constants, strict=True))
            for r, x in zip(rest, signs, strict=True)
        ]
        values = dict(self.offset)
        spread = dict(self.offset)
        for task in self.offset:
            known = (
                constants[0] * self.positive[task]
                + constants[-1] * self.negative[task]
                + power * (self.judged[task] - self.offset[task])
            )
            values[task] += known
            spread[task] += known
        seen = 0.0
        for cell, r, own, w in zip(
            cells, residual, _leverages(design, weight), weight, strict=True
        ):
            careful = r / math.sqrt(1.0 - own)
            values[cell[0]] += self.contribution[cell] * self.labels[cell][1] * r
            spread[cell[0]] += self.contribution[cell] * self.labels[cell][1] * careful
            seen += w * careful**2
        n = len(values)
        effective = _kish(weight)
        n_errors = effective * seen / sum(weight)
        more = 2.0 * max(0.0, 1.0 - n_errors / 6.0)
        extra = max(
            0.0, sum(weight) * effective * (n_errors + more) / (effective + 2 * more) ** 2 - seen
        )
        centre = self.mean(spread)
        variance = sum((z - centre) ** 2 for z in spread.values()) / (n - 1) / n + extra / n**2
        of_tasks: dict[str, float] = defaultdict(float)
        for cell, w in zip(cells, weight, strict=True):
            of_tasks[cell[0]] += w
        degrees = _kish(list(of_tasks.values())) - len(design[0])
        mean = self.mean(values)
        student = float(stats.t.ppf(0.975, degrees))
        down, up = (
            math.sqrt(variance) * max(student, each) for each in _resampled(list(spread.values()))
        )
        return mean, mean - down, mean + up, power, effective

    def _importance(self, cell: Cell) -> float:
        factor = self.labels[cell][1]
        return self.contribution[cell] ** 2 * factor * max(factor - 1.0, 0.001 * factor)


def _resampled(values: Sequence[float], n_resamples: int = 2_000) -> tuple[float, float]:
    """Return the bootstrap-t interval's lengths down and up, in standard errors (Efron and
    Tibshirani 1993, 12.5).
    """
    dice = random.Random(1)
    n = len(values)
    mean = math.fsum(values) / len(values)
    steps = []
    for _ in range(n_resamples):
        again = dice.choices(values, k=n)
        centre = sum(again) / n
        steps.append(
            (centre - mean) / math.sqrt(sum((each - centre) ** 2 for each in again) / (n - 1) / n)
        )
    steps.sort()
    return steps[round(0.975 * n_resamples)], -steps[round(0.025 * n_resamples)]


def _kish(weight: Sequence[float]) -> float:
    return sum(weight) ** 2 / sum(w * w for w in weight)


def _fit(
    design: Sequence[Sequence[float]], target: Sequence[float], weight: Sequence[float]
) -> list[float]:
    """Fit by weighted least squares."""
    root = np.sqrt(weight)
    result: list[float] = np.linalg.lstsq(
        np.array(design) * root[:, None], np.array(target) * root
    )[0].tolist()
    return result


def _leverages(design: Sequence[Sequence[float]], weight: Sequence[float]) -> list[float]:
    """The diagonal of the hat matrix."""
    scaled = np.array(design) * np.sqrt(weight)[:, None]
    result: list[float] = np.diag(scaled @ np.linalg.pinv(scaled)).tolist()
    return result
