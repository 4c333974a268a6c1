"""The figure on sources of uncertainty: of which scores it is, its costs, and the plan's line."""

import random
from collections import Counter
from itertools import product
from statistics import fmean
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.aggregate import aggregate
from tasks.config.settings import Settings
from tasks.figures.scope import Scope
from tasks.figures.shown.judges import UNCERTAINTY, repetition_lines
from tasks.rules.statistics.uncertainty import components, task_scores
from tests.kit import Row, Rows, admitted, criterion, response, verdict
from tests.tasks.report.synthetic.scopes import scope_of
from warehouse import Warehouse

TASKS = [f"t{number}" for number in range(8)]
WEIGHTS = (5, 3, 2)
"""Of the criteria of each task; a score is the sum of the met ones / 10."""
JUDGE_TRIALS = [("strict", 1), ("strict", 2), ("mild", 1)]
PRICES = {"strict": 0.01, "mild": None}
"""The cost of a verdict, in US dollars."""
VERDICTS_USD = 0.03
"""The cost of the verdicts of `strict` on the three criteria of a task."""
Scores = dict[tuple[str, int, int, int], float]
"""(judge, judge trial, index of the task, trial) -> score."""


def stored_rows() -> tuple[Rows, Scores]:
    """Return the rows of random verdicts on two responses to each task, and their scores."""
    dice = random.Random(3)
    tables = admitted(TASKS, n_criteria=len(WEIGHTS))
    tables |= {"criteria": [], "responses": [], "verdicts": []}
    scores: Scores = Counter()
    for task, task_id in enumerate(TASKS):
        for trial in (1, 2):
            response_row = response(task_id, trial=trial, cost_usd=0.5)
            tables["responses"].append(response_row)
        for position, weight in enumerate(WEIGHTS):
            criterion_row = criterion(task_id, position, weight)
            tables["criteria"].append(criterion_row)
            for trial, (judge, judge_trial) in product((1, 2), JUDGE_TRIALS):
                value = float(dice.random() < 0.6)
                scores[judge, judge_trial, task, trial] += value * weight / 10
                verdict_row = verdict(
                    tables["responses"][2 * task + trial - 1],
                    criterion_row,
                    value,
                    judge=judge,
                    judge_trial=judge_trial,
                    cost_usd=PRICES[judge],
                )
                tables["verdicts"].append(verdict_row)
    return tables, scores


TABLES, SCORES = stored_rows()


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> dict[tuple[str, str], Row]:
    """The rows of the figure, by judge and source."""
    folder = tmp_path_factory.mktemp("uncertainty")
    job = scope_of(folder, TABLES).job
    aggregate(job)
    with Warehouse(folder).reader() as reader:
        figure_rows = Scope(job, reader).rows_of(UNCERTAINTY)
    return {(row["judge_config"], row["source"]): row for row in figure_rows}


def test_variances_are_those_of_the_scores_of_all_trials_of_a_judge(rows):
    cells = [cell for cell in SCORES if cell[0] == "strict"]
    tasks = np.array([cell[2] for cell in cells])
    trials = np.array([cell[3] for cell in cells])
    values = np.array([SCORES[cell] for cell in cells])
    expected = components(task_scores(tasks, 10 * tasks + trials, values))

    results = [
        rows["strict", source] for source in ("tasks", "trials", "judge trials")
    ]

    for result, component in zip(results, expected, strict=True):
        assert result["variance"] == pytest.approx(component.variance)


def test_two_judges_have_the_range_of_their_means_on_the_same_responses(rows):
    row = rows["several judges", "judges"]

    means = []
    for judge in ("strict", "mild"):
        means.append(fmean(SCORES[cell] for cell in SCORES if cell[0] == judge))
    assert row["variance"] is None
    assert row["note"] == f"means {min(means):.3f} to {max(means):.3f}"


@pytest.mark.parametrize(
    ("source", "cost_usd"),
    [
        # 100 tasks with two responses, each judged twice.
        ("tasks", 100 * (2 * 0.5 + 4 * VERDICTS_USD)),
        # A response to each of 8 tasks, judged twice.
        ("trials", 8 * (0.5 + 2 * VERDICTS_USD)),
        # All 16 responses are judged once more.
        ("judge trials", 16 * VERDICTS_USD),
    ],
)
def test_more_of_a_source_costs_the_mean_prices_of_responses_and_verdicts(
    rows, source, cost_usd
):
    assert rows["strict", source]["change_usd"] == pytest.approx(cost_usd)


def test_an_unknown_price_is_no_cost(rows):
    assert rows["mild", "tasks"]["change_usd"] is None
    assert rows["mild", "judge trials"]["change_usd"] is None


def test_another_judge_costs_the_mean_of_the_known_prices(rows):
    row = rows["several judges", "judges"]

    assert row["change_usd"] == pytest.approx(16 * VERDICTS_USD)


def lines_with(width: float, n_trials: int) -> list[str]:
    """The plan's lines if a number of trials brings the width from 1 to another one."""
    row = {
        "source": "trials",
        "model_label": "a-model",
        "single_width": 1.0,
        "width": width,
    }
    configured = {
        "dataset": {"source": "sample"},
        "models": [{"name": "x/y", "label": "a-model"}],
        "trials": n_trials,
    }
    job = SimpleNamespace(settings=Settings.model_validate(configured))
    return repetition_lines(SimpleNamespace(job=job, rows_of=lambda _: [row]))


def test_the_plan_names_configured_trials_that_buy_less_than_a_tenth():
    lines = lines_with(0.95, n_trials=2)

    assert lines == [
        "Repetitions that narrow intervals by less than a tenth: trials of a-model"
        " (prbench figure uncertainty)"
    ]


@pytest.mark.parametrize(("width", "n_trials"), [(0.85, 2), (0.95, 1)])
def test_the_plan_names_no_trials_that_buy_a_tenth_or_are_not_configured(
    width, n_trials
):
    assert lines_with(width, n_trials) == []
