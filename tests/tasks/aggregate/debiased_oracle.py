"""A made-up warehouse with labels, and its debiased scores computed again, without the project's
rules and SQL.
"""

import itertools
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tests.kit import Row, Rows, admitted, criterion, response, row, verdict

Floats = NDArray[np.float64]
CATEGORIES = ("Practical Utility", "Financial Accuracy")
MODELS = ("ada", "bob")
TRIALS = (1, 2)


class Response(NamedTuple):
    task_id: str
    model: str
    trial: int


class Cell(NamedTuple):
    """A criterion of a response, by its position."""

    task_id: str
    model: str
    trial: int
    position: int

    @property
    def response(self) -> Response:
        return Response(self.task_id, self.model, self.trial)


LOST = Response("t3", "ada", 2)
"""A trial with a failed verdict: no score includes it."""


class LabelledWorld:
    """Two models in two trials on 60 tasks, a judge of all responses, two sheets, and a later label
    that no sheet drew.

    The first sheet lacks labels in a few rows; the second was drawn with its labels. One model's
    sheet is larger.
    """

    def __init__(self, seed: int, n_tasks: int = 60, n_criteria: int = 6):
        dice = random.Random(seed)
        self.tasks = [f"t{number}" for number in range(n_tasks)]
        self.criteria: dict[str, list[Row]] = defaultdict(list)
        for number, position in itertools.product(range(n_tasks), range(n_criteria)):
            # The first criterion is positive, so that every task has a score; every third task has
            # a negative one.
            is_negative = position == 5 and number % 3 == 0
            weight = -4.0 if is_negative else float(dice.randint(1, 10))
            line = criterion(f"t{number}", position, weight, CATEGORIES[position % 2])
            self.criteria[f"t{number}"].append(line)
        cells = itertools.product(self.tasks, MODELS, TRIALS, range(n_criteria))
        self.cells = list(itertools.starmap(Cell, cells))
        self.truth: dict[Cell, float] = {}
        for cell in self.cells:
            met_share = 0.7 if cell.model == "ada" else 0.5
            self.truth[cell] = float(dice.random() < met_share)
        self.judge = _with_errors(dice, self.truth)
        sampled = dice.sample(self.cells, 520)
        empty_cells = set(sampled[:8])  # rows of the first sheet without a label
        self.first_sheet = {cell: 0.2 + 0.2 * dice.random() for cell in sampled[:340]}
        labels_of_eva = {
            cell: self.truth[cell]
            for cell in self.first_sheet
            if cell not in empty_cells
        }
        labels_of_ben = {}
        for cell, value in labels_of_eva.items():
            if dice.random() < 0.4:
                labels_of_ben[cell] = value if dice.random() < 0.8 else 1.0 - value
        self.known = list(labels_of_eva)
        self.second_sheet = {
            cell: 0.15 + 0.1 * dice.random() for cell in sampled[340:519]
        }
        labels_of_eva |= {cell: self.truth[cell] for cell in self.second_sheet}
        self.unsampled = sampled[519]
        labels_of_eva[self.unsampled] = 1.0 - self.judge[self.unsampled]
        self.decided = {"eva": labels_of_eva, "ben": labels_of_ben}

    def tables(self) -> Rows:
        responses = {cell.response: response(*cell.response) for cell in self.cells}
        verdicts = []
        for cell, value in self.judge.items():
            has_failed = cell.response == LOST and cell.position == 0
            judged = verdict(
                responses[cell.response],
                self.criteria[cell.task_id][cell.position],
                None if has_failed else value,
                probability=_probability(cell, value),
            )
            verdicts.append(judged)
        for person, labels in self.decided.items():
            for cell, value in labels.items():
                label = verdict(
                    responses[cell.response],
                    self.criteria[cell.task_id][cell.position],
                    value,
                    judge=person,
                    source="imported",
                    judge_config_hash="imported",
                    template_hash="imported",
                    import_batch="b",
                )
                verdicts.append(label)
        draws = []
        for cell, share in self.first_sheet.items():
            draws.append(self._draw("s1", cell, share))
        for cell, share in self.second_sheet.items():
            draws.append(self._draw("s2", cell, share))
        for cell in self.known:
            draws.append(self._draw("s2", cell, 1.0, is_known=True))
        return {
            **admitted(self.tasks),
            "criteria": list(itertools.chain.from_iterable(self.criteria.values())),
            "responses": list(responses.values()),
            "verdicts": verdicts,
            "labellers": [
                row("labellers", judge=person, import_batch="b")
                for person in self.decided
            ],
            "label_sheets": [
                self._sheet("s1", self.first_sheet, n_known=0),
                self._sheet("s2", self.second_sheet, n_known=len(self.known)),
            ],
            "label_draws": draws,
        }

    def _sheet(
        self, sheet_id: str, sampled: Mapping[Cell, float], n_known: int
    ) -> Row:
        response_ids = {
            response(*cell.response)["response_id"]: None for cell in self.cells
        }
        return row(
            "label_sheets",
            sheet_id=sheet_id,
            covered_breakdown="all",
            covered_label="",
            n_drawn=len(sampled),
            covered_responses=list(response_ids),
            n_population=len(self.cells) - n_known,
        )

    def _draw(
        self, sheet_id: str, cell: Cell, probability: float, *, is_known: bool = False
    ) -> Row:
        line = self.criteria[cell.task_id][cell.position]
        return row(
            "label_draws",
            sheet_id=sheet_id,
            task_id=cell.task_id,
            probability=probability,
            response_id=response(*cell.response)["response_id"],
            is_known=is_known,
            criterion_id=line["criterion_id"],
            criterion_hash=line["content_hash"],
        )

    def labels(self) -> dict[Cell, tuple[float, float]]:
        """Each sampled label (the mean of people's decisions) with the number of verdicts that it
        represents.
        """
        decisions = defaultdict(list)
        for labels in self.decided.values():
            for cell, value in labels.items():
                decisions[cell].append(value)
        n_cells = len(self.cells)
        n_labelled = len(self.first_sheet.keys() & decisions.keys())
        labelled_share = n_labelled / len(self.first_sheet)
        first_weight = n_labelled / n_cells
        second_weight = len(self.second_sheet) / (n_cells - len(self.known))
        weighted = {}
        for cell, values in decisions.items():
            represented = 0.0
            if cell in self.first_sheet:
                represented += first_weight / (
                    self.first_sheet[cell] * labelled_share
                )
            if cell in self.known:
                represented += second_weight
            elif cell in self.second_sheet:
                represented += second_weight / self.second_sheet[cell]
            if represented:
                total_weight = first_weight + second_weight
                weighted[cell] = (
                    statistics.fmean(values),
                    represented / total_weight,
                )
        return weighted

    def expected(
        self, model: str, score: str = "score", category: str | None = None
    ) -> dict[str, float]:
        """A model's debiased figure by column, computed as the README says."""
        figure = _Figure(self, model, score, category)
        debiased = figure.estimate(uses_judge=True)
        alone = figure.estimate(uses_judge=False)
        columns = {
            "judge_score": _mean(figure.judged),
            "n_labels": len(figure.labels),
            "n_tasks_labelled": len({cell.task_id for cell in figure.labels}),
            "debiased": debiased.mean,
            "debiased_ci_low": debiased.low,
            "debiased_ci_high": debiased.high,
            "judge_power": debiased.power,
            "effective_labels": debiased.effective_labels,
            "labels_alone": alone.mean,
            "labels_alone_ci_low": alone.low,
            "labels_alone_ci_high": alone.high,
        }
        if score == "score" and category is None:
            columns["expected_score"] = _mean(figure.likely)
            columns["expected_difference"] = columns["expected_score"] - debiased.mean
        return columns


def without_labels_on(
    tables: Mapping[str, list[Row]], models: set[str], positions: set[int]
) -> dict[str, list[Row]]:
    """The tables without the labels on these models and on the criteria at these positions."""
    verdicts = []
    for label in tables["verdicts"]:
        position = int(label["criterion_id"].rsplit("-c", 1)[1])
        is_left_out = label["model"] in models or position in positions
        if label["source"] != "imported" or not is_left_out:
            verdicts.append(label)
    return {**tables, "verdicts": verdicts}


def _with_errors(
    dice: random.Random, truth: Mapping[Cell, float]
) -> dict[Cell, float]:
    """Decisions of which every fifth is wrong."""
    return {
        cell: value if dice.random() < 0.8 else 1.0 - value
        for cell, value in truth.items()
    }


def _probability(cell: Cell, value: float) -> float:
    """The judge's probability that a criterion is met, consistent with its decision."""
    return value + (1 - 2 * value) * (0.05 + 0.1 * (cell.position % 4))


def _mean(values: Mapping[str, float]) -> float:
    return statistics.fmean(values.values())


class Estimate(NamedTuple):
    """A debiased mean with its interval, the judge's power, and effective labels."""

    mean: float
    low: float
    high: float
    power: float
    effective_labels: float


@dataclass
class _Fit:
    """The labels of a figure, as arrays with an entry for each, and the fit of the judge to them.

    Attributes:
        signs: columns with 1 for labels on criteria of positive and of negative weight; one
            column if there are too few of either.
        residuals: what constants and judge leave unexplained.
        leverages: the diagonal of the hat matrix.
    """

    signs: Floats
    weights: Floats
    power: float
    constants: Floats
    residuals: Floats
    leverages: Floats
    n_columns: int


class _Figure:
    """One model's figure: the values of its tasks, and its labels."""

    def __init__(
        self, world: LabelledWorld, model: str, score: str, category: str | None
    ):
        self.offsets: dict[str, float] = {}
        self.positive: dict[str, float] = {}
        self.negative: dict[str, float] = {}
        self.judged: dict[str, float] = {}
        self.likely: dict[str, float] = {}
        self.contributions: dict[Cell, float] = {}
        self.judge = world.judge
        for task_id in world.tasks:
            weights = {}
            for position, line in enumerate(world.criteria[task_id]):
                if category in {None, line["category"]}:
                    weights[position] = line["weight"]
            positive = sum(weight for weight in weights.values() if weight > 0)
            negative = sum(weight for weight in weights.values() if weight < 0)
            divisor = positive
            self.offsets[task_id] = 0.0
            if score == "min_normalized":
                divisor = positive - negative
                self.offsets[task_id] = -negative / divisor
            self.positive[task_id] = positive / divisor
            self.negative[task_id] = negative / divisor
            shares = {
                position: weight / divisor for position, weight in weights.items()
            }
            self._add_responses(task_id, model, shares)
        self.labels = {
            cell: label
            for cell, label in world.labels().items()
            if cell in self.contributions
        }

    def _add_responses(self, task_id: str, model: str, shares: Mapping[int, float]):
        """Add the judge's decisions on a task, whose criteria have these shares of the score."""
        self.judged[task_id] = self.offsets[task_id]
        self.likely[task_id] = self.offsets[task_id]
        responses = [Response(task_id, model, trial) for trial in TRIALS]
        if LOST in responses and 0 in shares:
            responses.remove(LOST)
        for scored, (position, share) in itertools.product(responses, shares.items()):
            cell = Cell(*scored, position)
            contribution = share / len(responses)
            decision = self.judge[cell]
            self.contributions[cell] = contribution
            self.judged[task_id] += contribution * decision
            self.likely[task_id] += contribution * _probability(cell, decision)

    def _fit(self, *, uses_judge: bool) -> _Fit:
        labels = np.array([value for value, _ in self.labels.values()])
        decisions = np.array([self.judge[cell] for cell in self.labels])
        weights = np.array([self._importance(cell) for cell in self.labels])
        is_positive = np.array(
            [self.contributions[cell] >= 0 for cell in self.labels]
        )
        signs = np.ones((len(labels), 1))
        if min(is_positive.sum(), (~is_positive).sum()) >= 10:
            signs = np.column_stack([is_positive, ~is_positive]).astype(float)
        with_judge = np.column_stack([signs, decisions])
        power = 0.0
        if uses_judge:
            power = min(
                max(_least_squares(with_judge, labels, weights)[-1], 0.0), 1.0
            )
        rest = labels - power * decisions
        constants = _least_squares(signs, rest, weights)
        design = with_judge if power > 0 else signs
        return _Fit(
            signs=signs,
            weights=weights,
            power=power,
            constants=constants,
            residuals=rest - signs @ constants,
            leverages=_leverages(design, weights),
            n_columns=design.shape[1],
        )

    def estimate(self, *, uses_judge: bool) -> Estimate:
        fit = self._fit(uses_judge=uses_judge)
        values = {}
        for task_id, offset in self.offsets.items():
            values[task_id] = (
                offset
                + fit.constants[0] * self.positive[task_id]
                + fit.constants[-1] * self.negative[task_id]
                + fit.power * (self.judged[task_id] - offset)
            )
        careful_values = dict(values)
        careful_residuals = fit.residuals / np.sqrt(1.0 - fit.leverages)
        weights_by_task = defaultdict(float)
        for index, (cell, (_, represented)) in enumerate(self.labels.items()):
            factor = self.contributions[cell] * represented
            values[cell.task_id] += factor * fit.residuals[index]
            careful_values[cell.task_id] += factor * careful_residuals[index]
            weights_by_task[cell.task_id] += fit.weights[index]
        effective_labels = _kish(fit.weights)
        seen = float(fit.weights @ careful_residuals**2)
        extra = _unseen_variance(seen, float(fit.weights.sum()), effective_labels)
        n_tasks = len(values)
        spread = list(careful_values.values())
        error = math.sqrt(statistics.variance(spread) / n_tasks + extra / n_tasks**2)
        degrees = _kish(np.array(list(weights_by_task.values()))) - fit.n_columns
        student = float(stats.t.ppf(0.975, degrees))
        down, up = _resampled(spread)
        mean = _mean(values)
        return Estimate(
            mean=mean,
            low=mean - error * max(student, down),
            high=mean + error * max(student, up),
            power=fit.power,
            effective_labels=effective_labels,
        )

    def _importance(self, cell: Cell) -> float:
        _, represented = self.labels[cell]
        return (
            self.contributions[cell] ** 2
            * represented
            * max(represented - 1.0, 0.001 * represented)
        )


def _unseen_variance(
    seen: float, total_weight: float, effective_labels: float
) -> float:
    """The variance of errors that few labels may not have shown."""
    n_errors = effective_labels * seen / total_weight
    pseudo_errors = 2.0 * max(0.0, 1.0 - n_errors / 6.0)
    raised_labels = effective_labels + 2 * pseudo_errors
    raised = (
        total_weight
        * effective_labels
        * (n_errors + pseudo_errors)
        / raised_labels**2
    )
    return max(0.0, raised - seen)


def _resampled(
    values: Sequence[float], n_resamples: int = 2_000
) -> tuple[float, float]:
    """Return the bootstrap-t interval's lengths down and up, in standard errors (Efron and
    Tibshirani 1993, 12.5).
    """
    dice = random.Random(1)
    n_values = len(values)
    mean = statistics.fmean(values)
    steps = []
    for _ in range(n_resamples):
        resample = np.array(dice.choices(values, k=n_values))
        error = resample.std(ddof=1) / math.sqrt(n_values)
        steps.append(float((resample.mean() - mean) / error))
    steps.sort()
    return steps[round(0.975 * n_resamples)], -steps[round(0.025 * n_resamples)]


def _kish(weights: Floats) -> float:
    return float(weights.sum() ** 2 / (weights**2).sum())


def _least_squares(design: Floats, target: Floats, weights: Floats) -> Floats:
    """Fit by weighted least squares."""
    roots = np.sqrt(weights)
    return np.asarray(np.linalg.lstsq(design * roots[:, None], target * roots)[0])


def _leverages(design: Floats, weights: Floats) -> Floats:
    """The diagonal of the hat matrix."""
    scaled = design * np.sqrt(weights)[:, None]
    return np.asarray(np.diag(scaled @ np.linalg.pinv(scaled)))
