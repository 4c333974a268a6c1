"""Rules for sending a criterion to the second judge: chosen on half of the tasks, measured on the
other half.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.cascades import rules
from tasks.rules.cascades.evaluation import (
    Bound,
    Costs,
    Evaluation,
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


def test_kendalls_tau_is_that_of_the_textbook() -> None:
    # Kendall, "The treatment of ties in ranking problems" (1945): (P - Q) / sqrt((n0 - n1)(n0 -
    # n2)).
    def one(a: list[float], b: list[float]) -> float:
        return float(kendall_tau(np.array(a), np.array(b)))

    orders: list[list[float]] = [[1, 2, 3, 4], [4, 3, 2, 1], [1, 3, 2, 4]]
    assert [one(orders[0], other) for other in orders] == [1.0, -1.0, pytest.approx(4 / 6)]
    assert [1.0, pytest.approx(2 / np.sqrt(2 * 3))] == [
        one([1, 1, 2], other) for other in ([1, 1, 2], [1, 2, 3])
    ]
    assert np.isnan(one([1, 1], [1, 2]))
    assert one([1, 2, np.nan], [1, 2, 3]) == 1.0


def test_the_strong_judge_alone_agrees_with_itself_and_costs_itself() -> None:
    paired = noise(1, 40)
    (alone,) = evaluate(paired, [CandidateRule("strong alone", None)], PRICED, 500)

    measures = ("agreement", "kappa")
    ends = ("", "_ci_low", "_ci_high")
    assert {alone.held_out[f"{measure}{end}"] for measure in measures for end in ends} == {1.0}
    assert pytest.approx(alone.held_out["thousand_usd"]) == 20.0
    assert alone.held_out["strong_calls"] == 1_000.0
    assert alone.held_out["cheap_calls"] == 0.0
    assert alone.held_out["ranking_tau"] == 1.0
    assert alone.held_out["score_change"] == 0.0


def test_comparing_repetitions_costs_two_calls_and_the_escalated_share() -> None:
    paired = noise(2, 40)
    (evaluated,) = evaluate(paired, [CandidateRule("d", When(disagreement=True))], PRICED, 500)

    share = evaluated.held_out["escalated_share"] or 0
    assert 0 < share < 1
    assert pytest.approx(1_000 * (2 * 0.001 + share * 0.02)) == evaluated.held_out["thousand_usd"]
    assert len(paired.strong) == evaluated.held_out["n_paired"] + evaluated.chosen_on["n_paired"]


def test_the_cheapest_rule_within_the_bound_is_picked_and_the_strong_judge_where_there_is_none() -> (
    None
):
    paired = noise(3, 120)
    half = for_choosing(paired.tasks)
    evaluated = evaluate(
        paired, rules.candidates(paired.of_tasks(half), has_repetitions=True), PRICED, 500
    )

    bound = Bound("agreement", 0.9)
    chosen = picked(evaluated, bound)
    assert (chosen.chosen_on["agreement_ci_low"] or 0.0) >= 0.9
    cheaper = [each for each in evaluated if each.expense[0] < chosen.expense[0]]
    assert all((each.chosen_on["agreement_ci_low"] or 0.0) < 0.9 for each in cheaper)
    assert picked(evaluated, Bound("agreement", 1.0)).candidate.when is None

    shown = front(evaluated, "agreement")
    values = [each.value("agreement") for each in shown]
    assert sorted(values) == values
    assert shown[-1].value("agreement") == 1.0


def test_few_tasks_that_differ_do_not_pass_for_certainty() -> None:
    paired = noise(4, 40, errs=0.001)
    (cheap,) = evaluate(paired, [CandidateRule("cheap alone", When())], PRICED, 500)

    assert cheap.chosen_on["n_differing"] < 5
    # Exact interval: 0 of 20 tasks allow up to 17 %.
    assert 0 < (cheap.chosen_on["agreement_ci_low"] or 0.0) < 0.9
    assert not Bound("kappa", 0.5).is_kept(cheap)


@pytest.mark.parametrize("n", [4, 8, 95, 96])
def test_halves_are_halves_whatever_the_order_of_the_tasks(n: int) -> None:
    tasks = [f"task-{index}" for index in range(n)]
    chosen = for_choosing(tasks)
    assert n // 2 == chosen.sum()
    assert chosen[::-1].tolist() == for_choosing(tasks[::-1]).tolist()


ALONE = CandidateRule("cheap alone", When())
WEIGHT = CandidateRule("w", When(weight_above=7.0))
DISAGREEMENT = CandidateRule("d", When(disagreement=True))
BOTH = CandidateRule("d or w", When(disagreement=True, weight_above=7.0))


def with_failures(paired: PairedVerdicts, share: float) -> PairedVerdicts:
    """Let the cheap judge fail on a share of the criteria, both times."""
    failed = np.random.default_rng(7).random(len(paired.strong)) < share
    first = np.where(failed[:, None], np.nan, paired.facts.first)
    return replace(paired, facts=replace(paired.facts, first=first))


def without_second(paired: PairedVerdicts, share: float) -> PairedVerdicts:
    """Remove the cheap judge's second verdict on a share of the criteria."""
    has_second = np.random.default_rng(8).random(len(paired.strong)) >= share
    first = paired.facts.first.copy()
    first[~has_second, 1] = np.nan
    return replace(paired, facts=replace(paired.facts, first=first), has_second=has_second)


def evaluated(paired: PairedVerdicts, *tried: CandidateRule) -> list[Evaluation]:
    return evaluate(paired, tried, Costs(None, None), 200)


def held_out(paired: PairedVerdicts) -> list[int]:
    """The indices of the criteria that the held-out figures are computed from."""
    choosing = for_choosing(paired.tasks)
    return [i for i, task in enumerate(paired.task) if not choosing[task]]


def test_what_the_cheap_judge_failed_on_is_escalated_by_each_rule_and_counts() -> None:
    paired = with_failures(noise(11, 40), 0.2)
    here = held_out(paired)
    by_weight, by_disagreement = (each.held_out for each in evaluated(paired, WEIGHT, DISAGREEMENT))
    first = paired.facts.first
    weights = paired.facts.weights
    goes = [bool(np.isnan(first[i, 0]) or weights[i] > 7) for i in here]
    assert len(here) == by_weight["n_paired"]
    assert pytest.approx(1_000 * sum(goes) / len(here)) == by_weight["strong_calls"]
    kept = [
        bool(first[i, 0] == first[i, 1]) for i in here
    ]  # NaN is equal to nothing, so failures are not kept
    assert pytest.approx(1 - sum(kept) / len(here)) == by_disagreement["escalated_share"]


def test_the_cheap_judge_alone_escalates_nothing_and_does_not_agree_where_it_failed() -> None:
    paired = with_failures(noise(12, 40), 0.2)
    (alone,) = (each.held_out for each in evaluated(paired, ALONE))
    decisions = [(paired.facts.first[i, 0], paired.strong[i]) for i in held_out(paired)]
    agreed = sum(bool(cheap == strong) for cheap, strong in decisions) / len(decisions)
    f1 = [
        2
        * sum(c == s == label for c, s in decisions)
        / (sum(c == label for c, _ in decisions) + sum(s == label for _, s in decisions))
        for label in (0.0, 1.0)
    ]
    by_chance = (
        sum(
            sum(c == label for c, _ in decisions) * sum(s == label for _, s in decisions)
            for label in (0.0, 1.0)
        )
        / len(decisions) ** 2
    )
    assert alone["escalated_share"] == 0.0
    assert len(decisions) == alone["n_paired"]
    figures = (alone["agreement"], alone["macro_f1"], alone["kappa"])
    assert pytest.approx((agreed, sum(f1) / 2, (agreed - by_chance) / (1 - by_chance))) == figures
    whole = [
        response
        for response in set(paired.response[held_out(paired)].tolist())
        if not np.isnan(paired.facts.first[paired.response == response, 0]).any()
    ]
    assert len(whole) == alone["n_ranked_responses"]


def test_a_missing_second_verdict_leaves_rules_that_do_not_look_at_it_as_they_are() -> None:
    full = noise(13, 120)
    some = without_second(full, 0.2)
    assert evaluated(full, ALONE, WEIGHT) == evaluated(some, ALONE, WEIGHT)


def test_a_rule_with_disagreement_counts_only_criteria_with_a_second_verdict() -> None:
    paired = without_second(noise(14, 120), 0.2)
    here = [i for i in held_out(paired) if paired.has_second[i]]
    weight, both = (each.held_out for each in evaluated(paired, WEIGHT, BOTH))
    first = paired.facts.first
    weights = paired.facts.weights
    goes = [bool(first[i, 0] != first[i, 1] or weights[i] > 7) for i in here]
    assert len(here) == both["n_paired"]
    assert pytest.approx(sum(goes) / len(here)) == both["escalated_share"]
    assert weight["n_ranked_responses"] == 180
    # In 3.5 % of the responses all 15 criteria have a second verdict.
    assert 0 < both["n_ranked_responses"] < 20


def test_a_rule_that_nothing_can_be_replayed_for_is_unknown_and_never_the_cheapest() -> None:
    paired = without_second(noise(15, 40), 1.1)
    unknown, known = evaluated(paired, DISAGREEMENT, WEIGHT)
    actual = unknown.held_out
    assert actual["n_paired"] == 0
    assert actual["agreement"] is None
    assert actual["strong_calls"] is None
    assert unknown.expense > known.expense


def test_failures_do_not_make_a_category_one_in_which_the_cheap_judge_errs() -> None:
    paired = noise(16, 40)
    names = np.array(["a", "b"])[paired.task % 2]
    first = paired.strong.copy()
    first[(names == "a") & (np.arange(len(first)) % 3 == 0)] = np.nan
    wrong = (names == "b") & (np.arange(len(first)) % 10 == 0)
    first[wrong] = 1.0 - first[wrong]
    facts = replace(paired.facts, first=first[:, None], categories=names)
    tried = rules.candidates(replace(paired, facts=facts), has_repetitions=False)
    assert "weight above 1 or category b" in {each.name for each in tried}


Case = tuple[list[float | None], int, str, float | None, str, tuple[str, ...]]
VALUES = st.sampled_from([None, 0.0, 0.5, 1.0])
CATEGORIES = ("Accuracy", "Style", "(none)")
SOME = st.lists(st.sampled_from("ab"), unique=True, max_size=2).map(tuple)
WHENS = st.builds(
    When,
    st.booleans(),
    st.none() | st.integers(0, 10).map(float),
    st.lists(st.sampled_from(CATEGORIES), unique=True, max_size=2).map(tuple),
    st.none() | st.floats(0.01, 1.0),
    SOME,
    SOME,
)
CRITERIA = st.tuples(
    st.lists(VALUES, min_size=2, max_size=3),
    st.integers(-10, 10),
    st.sampled_from(CATEGORIES),
    st.none() | st.floats(0.0, 1.0),
    st.sampled_from("ab"),
    SOME,
)


def described(criterion: Case) -> dict[str, Any]:
    _, weight, category, _, severity, kinds = criterion
    return {
        "weight": weight,
        "category": category,
        "severity": severity,
        "kinds": kinds,
    }


@given(WHENS, CRITERIA)
def test_a_criterion_stays_with_the_first_judge_only_if_no_condition_holds(
    when: When, criterion: Case
) -> None:
    first, weight, category, confidence, severity, kinds = criterion
    counted = first if when.disagreement else first[:1]
    goes = (
        None in counted
        or (when.disagreement and len(set(counted)) > 1)
        or (when.weight_above is not None and abs(weight) > when.weight_above)
        or (
            when.confidence_below is not None
            and (confidence is None or confidence < when.confidence_below)
        )
        or category in when.categories
        or severity in when.severities
        or set(kinds) & set(when.kinds)
    )
    assert bool(goes) == bool(
        rules.reasons_to_escalate(when, first, confidence, described(criterion))
    )


@given(WHENS, st.lists(CRITERIA, min_size=1, max_size=8))
def test_many_criteria_are_decided_as_each_alone(when: When, criteria: list[Case]) -> None:
    n = min(len(first) for first, *_ in criteria)
    facts = Facts(
        np.array([[math.nan if v is None else v for v in first[:n]] for first, *_ in criteria]),
        np.array([float(weight) for _, weight, *_ in criteria]),
        np.array([category for _, _, category, *_ in criteria]),
        np.array([math.nan if c is None else c for *_, c, _, _ in criteria]),
        np.full(len(criteria), math.nan),
        np.array([severity for *_, severity, _ in criteria]),
        np.array([" ".join(kinds) for *_, kinds in criteria]),
    )
    at_once = rules.escalations(when, facts)
    for i, each in enumerate(criteria):
        alone = rules.reasons_to_escalate(when, each[0][:n], each[3], described(each))
        assert alone == [reason for reason, which in at_once.items() if which[i]]


def test_repetitions_are_asked_only_where_they_are_compared() -> None:
    assert When(disagreement=True).n_repetitions(3) == 3
    assert When(weight_above=7).n_repetitions(3) == 1


def test_a_confidence_at_the_limit_is_not_below_it() -> None:
    criterion = described(([1.0], 5, "A", None, "a", ()))
    when = When(confidence_below=0.9)

    assert rules.reasons_to_escalate(when, [1.0], 0.9, criterion) == []
    assert rules.reasons_to_escalate(when, [1.0], 0.899, criterion) == ["confidence"]


@pytest.mark.parametrize(
    ("confidences", "levels"),
    [
        ((0.9, 0.99), ["0.95", "0.99"]),
        ((0.4, 0.9999), ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95", "0.99", "0.999"]),
    ],
)
def test_only_levels_with_confidences_on_both_sides_are_tried(
    confidences: tuple[float, ...], levels: list[str]
) -> None:
    paired = noise(1, 10)
    confidence = np.resize(confidences, len(paired.strong))
    tried = rules.candidates(
        replace(paired, facts=replace(paired.facts, confidence=confidence)), has_repetitions=False
    )

    alone = [each.name for each in tried if each.name.startswith("confidence below")]
    assert alone == [f"confidence below {level}" for level in levels]


def two_verdicts(
    first: np.ndarray, strong: np.ndarray, has_second: np.ndarray | None = None
) -> PairedVerdicts:
    """Verdicts on one criterion of weight 1, by task and model: shape (n_tasks, n_models)."""
    n_tasks, n_models = strong.shape
    n = strong.size
    responses = np.arange(n)
    nothing = np.full(n, "")
    facts = Facts(
        first=np.repeat(first.reshape(-1, 1), 2, axis=1),
        weights=np.ones(n),
        categories=nothing,
        confidence=np.full(n, np.nan),
        probability=np.full(n, np.nan),
        severities=nothing,
        kinds=nothing,
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
        has_second=np.ones(n, dtype=np.bool_) if has_second is None else has_second.ravel(),
    )


def figures(
    paired: PairedVerdicts, candidate: CandidateRule, resamples: int = 200
) -> dict[str, Any]:
    (row,) = figures_of(paired, [candidate], Costs(None, None), resamples)
    return row


@pytest.mark.parametrize(("n_differing", "is_small"), [(9, True), (10, False)])
def test_an_interval_rests_on_at_least_ten_tasks_that_differ(
    n_differing: int, is_small: bool
) -> None:
    strong = np.ones((50, 1))
    first = strong.copy()
    first[:n_differing] = 0.0

    row = figures(two_verdicts(first, strong), ALONE)

    assert row["n_differing"] == n_differing
    assert row["is_small"] == is_small


def test_a_task_counts_only_if_a_rule_can_be_replayed_on_one_of_its_criteria() -> None:
    has_second = np.ones((20, 1), dtype=np.bool_)
    has_second[:8] = False

    row = figures(two_verdicts(np.ones((20, 1)), np.ones((20, 1)), has_second), DISAGREEMENT)

    assert row["n_tasks"] == 12


def test_judges_that_only_say_met_agree_fully_on_that_label() -> None:
    row = figures(two_verdicts(np.ones((20, 1)), np.ones((20, 1))), ALONE)

    assert row["macro_f1"] == 1.0


def test_a_response_without_a_verdict_moves_no_model_up_in_the_ranking() -> None:
    """The cheap judge prefers the second model in each task that both have, the strong one the
    first. The second model lacks most tasks.
    """
    strong = np.tile([1.0, 0.0], (40, 1))
    first = 1.0 - strong
    first[:30, 1] = np.nan

    row = figures(two_verdicts(first, strong), ALONE)

    assert row["ranking_tau"] == -1.0
    assert row["ranking_tau_ci_low"] == -1.0
    assert row["ranking_tau_ci_high"] == -1.0


def test_a_ranking_that_no_resample_has_has_no_interval() -> None:
    """The only resample draws none of the tasks in which the models differ."""
    draw = draws(6, 1)[0]
    strong = np.ones((6, 2))
    strong[np.flatnonzero(draw == 0), 1] = 0.0

    row = figures(two_verdicts(strong, strong), ALONE, resamples=1)

    assert row["ranking_tau"] == 1.0
    assert row["ranking_tau_ci_low"] is None
