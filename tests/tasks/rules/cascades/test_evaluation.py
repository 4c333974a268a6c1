"""Rules for sending a criterion to the second judge: chosen on half of the tasks, measured on the
other half.
"""

import math
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, f1_score

from tasks.rules.cascades import rules
from tasks.rules.cascades.evaluation import (
    Bound,
    Costs,
    Evaluation,
    Figures,
    evaluate,
    figures_of,
    for_choosing,
    front,
    kendall_tau,
    picked,
)
from tasks.rules.cascades.rules import CandidateRule, Facts, PairedVerdicts, When
from tasks.rules.statistics.intervals import draws
from tests.tasks.rules.cascades.worlds import noise

PRICED = Costs(0.001, 0.02)
UNKNOWN = Costs(None, None)
ALONE = CandidateRule("cheap alone", When())
WEIGHT = CandidateRule("w", When(weight_above=7.0))
DISAGREEMENT = CandidateRule("d", When(disagreement=True))
BOTH = CandidateRule("d or w", When(disagreement=True, weight_above=7.0))


@pytest.mark.parametrize(
    ("scores_a", "scores_b", "tau"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 4 / 6),
        ([1, 1, 2], [1, 1, 2], 1.0),
        ([1, 1, 2], [1, 2, 3], 2 / 6**0.5),
        ([1, 1], [1, 2], math.nan),
        ([1, 2, math.nan], [1, 2, 3], 1.0),
    ],
)
def test_kendalls_tau_is_that_of_the_textbook(scores_a, scores_b, tau):
    # Kendall, "The treatment of ties in ranking problems" (1945): (P - Q) / sqrt((n0 - n1)(n0 -
    # n2)).
    result = kendall_tau(np.array(scores_a), np.array(scores_b))

    assert float(result) == pytest.approx(tau, nan_ok=True)


def test_the_strong_judge_alone_agrees_with_itself_and_costs_itself():
    [evaluation] = evaluate(
        noise(1, 40), [CandidateRule("strong alone", None)], PRICED, 500
    )

    figures = evaluation.held_out
    for measure in ("agreement", "kappa"):
        assert figures[measure] == 1.0
        assert figures[f"{measure}_ci_low"] == 1.0
        assert figures[f"{measure}_ci_high"] == 1.0
    assert figures["thousand_usd"] == pytest.approx(20.0)
    assert figures["strong_calls"] == 1_000.0
    assert figures["cheap_calls"] == 0.0
    assert figures["ranking_tau"] == 1.0
    assert figures["score_change"] == 0.0


def test_comparing_repetitions_costs_two_calls_and_the_escalated_share():
    paired = noise(2, 40)

    [evaluation] = evaluate(paired, [DISAGREEMENT], PRICED, 500)

    figures = evaluation.held_out
    share = figures["escalated_share"]
    assert 0 < share < 1
    assert figures["thousand_usd"] == pytest.approx(
        1_000 * (2 * 0.001 + share * 0.02)
    )
    assert figures["n_paired"] + evaluation.chosen_on["n_paired"] == len(
        paired.strong
    )


@pytest.fixture(scope="module")
def evaluations() -> list[Evaluation]:
    """All rules that are tried for one pair of judges."""
    paired = noise(3, 120)
    candidates = rules.candidates(
        paired.of_tasks(for_choosing(paired.tasks)), has_repetitions=True
    )
    return evaluate(paired, candidates, PRICED, 500)


def test_the_cheapest_rule_within_the_bound_is_picked(evaluations):
    result = picked(evaluations, Bound("agreement", 0.9))

    cheaper = [
        evaluation
        for evaluation in evaluations
        if evaluation.expense[0] < result.expense[0]
    ]
    assert result.chosen_on["agreement_ci_low"] >= 0.9
    assert all(
        evaluation.chosen_on["agreement_ci_low"] < 0.9 for evaluation in cheaper
    )


def test_the_strong_judge_is_picked_where_no_rule_keeps_the_bound(evaluations):
    assert picked(evaluations, Bound("agreement", 1.0)).candidate.when is None


def test_on_the_front_a_dearer_rule_agrees_more(evaluations):
    values = [
        evaluation.value("agreement")
        for evaluation in front(evaluations, "agreement")
    ]

    assert values == sorted(values)
    assert values[-1] == 1.0


def test_few_tasks_that_differ_do_not_pass_for_certainty():
    [evaluation] = evaluate(noise(4, 40, errs=0.001), [ALONE], PRICED, 500)

    figures = evaluation.chosen_on
    assert figures["n_differing"] < 5
    # Exact interval: 0 of 20 tasks allow up to 17 %.
    assert 0 < figures["agreement_ci_low"] < 0.9
    assert not Bound("kappa", 0.5).is_kept(evaluation)


@pytest.mark.parametrize("n_tasks", [4, 8, 95, 96])
def test_halves_are_halves_whatever_the_order_of_the_tasks(n_tasks):
    tasks = [f"task-{index}" for index in range(n_tasks)]

    flags = for_choosing(tasks)

    assert flags.sum() == n_tasks // 2
    assert for_choosing(tasks[::-1]).tolist() == flags[::-1].tolist()


def with_failures(paired: PairedVerdicts) -> PairedVerdicts:
    """Let the cheap judge fail on a fifth of the criteria, both times."""
    failed = np.random.default_rng(7).random(len(paired.strong)) < 0.2
    cheap_values = np.where(failed[:, None], np.nan, paired.facts.first)
    return replace(paired, facts=replace(paired.facts, first=cheap_values))


def without_second(paired: PairedVerdicts, share: float) -> PairedVerdicts:
    """Remove the cheap judge's second verdict on a share of the criteria."""
    has_second = np.random.default_rng(8).random(len(paired.strong)) >= share
    cheap_values = paired.facts.first.copy()
    cheap_values[~has_second, 1] = np.nan
    return replace(
        paired, facts=replace(paired.facts, first=cheap_values), has_second=has_second
    )


def held_out_figures(paired: PairedVerdicts, candidate: CandidateRule) -> Figures:
    [evaluation] = evaluate(paired, [candidate], UNKNOWN, 200)
    return evaluation.held_out


def held_out(paired: PairedVerdicts) -> np.ndarray:
    """The indices of the criteria that the held-out figures are computed from."""
    return np.flatnonzero(~for_choosing(paired.tasks)[paired.task])


def test_a_failure_of_the_cheap_judge_is_escalated_by_each_rule_and_counts():
    paired = with_failures(noise(11, 40))
    criteria = held_out(paired)
    cheap_values = paired.facts.first[criteria]
    is_failed = np.isnan(cheap_values[:, 0])
    is_heavy = paired.facts.weights[criteria] > 7
    # A failure is equal to nothing.
    is_different = cheap_values[:, 0] != cheap_values[:, 1]

    by_weight = held_out_figures(paired, WEIGHT)
    by_disagreement = held_out_figures(paired, DISAGREEMENT)

    n_strong = 1_000 * (is_failed | is_heavy).mean()
    assert by_weight["n_paired"] == len(criteria)
    assert by_weight["strong_calls"] == pytest.approx(n_strong)
    assert by_disagreement["escalated_share"] == pytest.approx(is_different.mean())


def test_the_cheap_judge_alone_escalates_nothing_and_does_not_agree_where_it_failed():
    paired = with_failures(noise(12, 40))
    criteria = held_out(paired)
    cheap = np.nan_to_num(paired.facts.first[criteria, 0], nan=2.0)
    strong = paired.strong[criteria]
    failed_responses = set(paired.response[criteria[cheap == 2.0]])

    figures = held_out_figures(paired, ALONE)

    f1 = f1_score(strong, cheap, labels=[0.0, 1.0], average="macro")
    ranked_responses = set(paired.response[criteria]) - failed_responses
    assert figures["escalated_share"] == 0.0
    assert figures["n_paired"] == len(criteria)
    assert figures["agreement"] == pytest.approx((cheap == strong).mean())
    assert figures["macro_f1"] == pytest.approx(f1)
    assert figures["kappa"] == pytest.approx(cohen_kappa_score(cheap, strong))
    assert figures["n_ranked_responses"] == len(ranked_responses)


def test_a_missing_second_verdict_leaves_rules_that_do_not_look_at_it_as_they_are():
    paired = noise(13, 120)
    candidates = [ALONE, WEIGHT]

    evaluations = evaluate(without_second(paired, 0.2), candidates, UNKNOWN, 200)

    assert evaluations == evaluate(paired, candidates, UNKNOWN, 200)


def test_a_rule_with_disagreement_counts_only_criteria_with_a_second_verdict():
    paired = without_second(noise(14, 120), 0.2)
    criteria = held_out(paired)
    criteria = criteria[paired.has_second[criteria]]
    cheap_values = paired.facts.first[criteria]
    is_escalated = (cheap_values[:, 0] != cheap_values[:, 1]) | (
        paired.facts.weights[criteria] > 7
    )

    figures = held_out_figures(paired, BOTH)

    assert figures["n_paired"] == len(criteria)
    assert figures["escalated_share"] == pytest.approx(is_escalated.mean())
    # In 3.5 % of the responses all 15 criteria have a second verdict.
    assert 0 < figures["n_ranked_responses"] < 20
    assert held_out_figures(paired, WEIGHT)["n_ranked_responses"] == 180


def test_a_rule_that_nothing_can_be_replayed_for_is_unknown_and_never_the_cheapest():
    paired = without_second(noise(15, 40), 1.1)

    unknown, by_weight = evaluate(paired, [DISAGREEMENT, WEIGHT], UNKNOWN, 200)

    assert unknown.held_out["n_paired"] == 0
    assert unknown.held_out["agreement"] is None
    assert unknown.held_out["strong_calls"] is None
    assert unknown.expense > by_weight.expense


def test_failures_do_not_make_a_category_one_in_which_the_cheap_judge_errs():
    paired = noise(16, 40)
    categories = np.array(["a", "b"])[paired.task % 2]
    numbers = np.arange(len(paired.strong))
    is_wrong = (categories == "b") & (numbers % 10 == 0)
    cheap_values = np.where(is_wrong, 1.0 - paired.strong, paired.strong)
    cheap_values[(categories == "a") & (numbers % 3 == 0)] = np.nan
    facts = replace(paired.facts, first=cheap_values[:, None], categories=categories)

    candidates = rules.candidates(replace(paired, facts=facts), has_repetitions=False)

    names = {candidate.name for candidate in candidates}
    assert "weight above 1 or category b" in names


def test_one_severity_or_kind_that_only_some_criteria_have_is_a_rule():
    paired = noise(16, 40)
    is_even = paired.task % 2 == 0
    facts = replace(
        paired.facts,
        severities=np.where(is_even, "high", "(none)"),
        kinds=np.where(is_even, "list number", "list"),
    )

    candidates = rules.candidates(replace(paired, facts=facts), has_repetitions=False)

    conditions = set(map(attrgetter("when"), candidates))
    assert rules.When(kinds=("list",)) not in conditions
    assert {
        rules.When(severities=("high",)),
        rules.When(kinds=("number",)),
    } <= conditions


@dataclass(frozen=True)
class Case:
    """A criterion, and the first judge's verdicts on it."""

    first_values: list[float | None]
    weight: int
    category: str
    confidence: float | None
    severity: str
    kinds: tuple[str, ...]

    @property
    def criterion(self) -> dict[str, Any]:
        return {
            "weight": self.weight,
            "category": self.category,
            "severity": self.severity,
            "kinds": self.kinds,
        }


CATEGORIES = ("Accuracy", "Style", "(none)")
NAMES = st.lists(st.sampled_from("ab"), unique=True, max_size=2).map(tuple)
CONDITIONS = st.builds(
    When,
    disagreement=st.booleans(),
    weight_above=st.none() | st.integers(0, 10).map(float),
    categories=st.lists(st.sampled_from(CATEGORIES), unique=True, max_size=2).map(
        tuple
    ),
    confidence_below=st.none() | st.floats(0.01, 1.0),
    severities=NAMES,
    kinds=NAMES,
)
CASES = st.builds(
    Case,
    first_values=st.lists(
        st.sampled_from([None, 0.0, 0.5, 1.0]), min_size=2, max_size=2
    ),
    weight=st.integers(-10, 10),
    category=st.sampled_from(CATEGORIES),
    confidence=st.none() | st.floats(0.0, 1.0),
    severity=st.sampled_from("ab"),
    kinds=NAMES,
)


def reasons_on(when: When, case: Case) -> list[str]:
    return rules.reasons_to_escalate(
        when, case.first_values, case.confidence, case.criterion
    )


@given(CONDITIONS, CASES)
def test_a_criterion_stays_with_the_first_judge_only_if_no_condition_holds(
    when, case
):
    repetitions = case.first_values if when.disagreement else case.first_values[:1]
    is_escalated = (
        None in repetitions
        or (when.disagreement and len(set(repetitions)) > 1)
        or (when.weight_above is not None and abs(case.weight) > when.weight_above)
        or (
            when.confidence_below is not None
            and (case.confidence is None or case.confidence < when.confidence_below)
        )
        or case.category in when.categories
        or case.severity in when.severities
        or not set(case.kinds).isdisjoint(when.kinds)
    )

    assert bool(reasons_on(when, case)) == is_escalated


@given(CONDITIONS, st.lists(CASES, min_size=1, max_size=8))
def test_many_criteria_are_decided_as_each_alone(when, cases):
    # NumPy makes NaN of None.
    facts = Facts(
        first=np.array([case.first_values for case in cases], dtype=float),
        weights=np.array([float(case.weight) for case in cases]),
        categories=np.array([case.category for case in cases]),
        confidence=np.array([case.confidence for case in cases], dtype=float),
        probability=np.full(len(cases), math.nan),
        severities=np.array([case.severity for case in cases]),
        kinds=np.array([" ".join(case.kinds) for case in cases]),
    )

    flags_by_reason = rules.escalations(when, facts)

    for index, case in enumerate(cases):
        reasons = [
            reason for reason, flags in flags_by_reason.items() if flags[index]
        ]
        assert reasons == reasons_on(when, case)


def test_repetitions_are_judged_only_where_they_are_compared():
    assert When(disagreement=True).n_repetitions(3) == 3
    assert When(weight_above=7).n_repetitions(3) == 1


@pytest.mark.parametrize(
    ("confidence", "reasons"), [(0.9, []), (0.899, ["confidence"])]
)
def test_a_confidence_at_the_limit_is_not_below_it(confidence, reasons):
    case = Case([1.0], 5, "A", confidence, "a", ())

    assert reasons_on(When(confidence_below=0.9), case) == reasons


@pytest.mark.parametrize(
    ("confidences", "levels"),
    [
        ((0.9, 0.99), ["0.95", "0.99"]),
        ((0.4, 0.9999), ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "0.999"]),
    ],
)
def test_only_levels_with_confidences_on_both_sides_are_tried(confidences, levels):
    paired = noise(1, 10)
    confidence = np.resize(confidences, len(paired.strong))
    facts = replace(paired.facts, confidence=confidence)

    candidates = rules.candidates(replace(paired, facts=facts), has_repetitions=False)

    prefix = "confidence below "
    names = [
        candidate.name
        for candidate in candidates
        if candidate.name.startswith(prefix)
    ]
    assert [name.removeprefix(prefix) for name in names] == levels


def two_verdicts(cheap: np.ndarray, strong: np.ndarray) -> PairedVerdicts:
    """Verdicts on one criterion of weight 1, by task and model: shape (n_tasks, n_models)."""
    n_tasks, n_models = strong.shape
    n = strong.size
    responses = np.arange(n)
    no_names = np.full(n, "")
    facts = Facts(
        first=np.repeat(cheap.reshape(-1, 1), 2, axis=1),
        weights=np.ones(n),
        categories=no_names,
        confidence=np.full(n, np.nan),
        probability=np.full(n, np.nan),
        severities=no_names,
        kinds=no_names,
    )
    return PairedVerdicts(
        facts=facts,
        strong=strong.ravel(),
        task=responses // n_models,
        response=responses,
        tasks=tuple(f"task-{index}" for index in range(n_tasks)),
        task_of_response=responses // n_models,
        model_of_response=responses % n_models,
        models=tuple(f"model-{index}" for index in range(n_models)),
        offset=np.zeros(n),
        denominator=np.ones(n),
        has_second=np.ones(n, dtype=np.bool_),
    )


def figures(
    paired: PairedVerdicts, candidate: CandidateRule, resamples: int = 200
) -> Figures:
    [row] = figures_of(paired, [candidate], UNKNOWN, resamples)
    return row


@pytest.mark.parametrize(("n_differing", "is_small"), [(9, True), (10, False)])
def test_an_interval_rests_on_at_least_ten_tasks_that_differ(n_differing, is_small):
    strong = np.ones((50, 1))
    cheap = strong.copy()
    cheap[:n_differing] = 0.0

    row = figures(two_verdicts(cheap, strong), ALONE)

    assert row["n_differing"] == n_differing
    assert row["is_small"] == is_small


def test_a_task_counts_only_if_a_rule_can_be_replayed_on_one_of_its_criteria():
    paired = two_verdicts(np.ones((20, 1)), np.ones((20, 1)))

    row = figures(replace(paired, has_second=np.arange(20) >= 8), DISAGREEMENT)

    assert row["n_tasks"] == 12


def test_judges_that_only_say_met_agree_fully_on_that_label():
    row = figures(two_verdicts(np.ones((20, 1)), np.ones((20, 1))), ALONE)

    assert row["macro_f1"] == 1.0


def test_a_response_without_a_verdict_moves_no_model_up_in_the_ranking():
    """The cheap judge prefers the second model in each task that both have, the strong one the
    first. The second model lacks most tasks.
    """
    strong = np.tile([1.0, 0.0], (40, 1))
    cheap = 1.0 - strong
    cheap[:30, 1] = np.nan

    row = figures(two_verdicts(cheap, strong), ALONE)

    assert row["ranking_tau"] == -1.0
    assert row["ranking_tau_ci_low"] == -1.0
    assert row["ranking_tau_ci_high"] == -1.0


def test_a_ranking_that_no_resample_has_has_no_interval():
    """The only resample draws none of the tasks in which the models differ."""
    draw = draws(6, 1)[0]
    strong = np.ones((6, 2))
    strong[np.flatnonzero(draw == 0), 1] = 0.0

    row = figures(two_verdicts(strong, strong), ALONE, resamples=1)

    assert row["ranking_tau"] == 1.0
    assert row["ranking_tau_ci_low"] is None
