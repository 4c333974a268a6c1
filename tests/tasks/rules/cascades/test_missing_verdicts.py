"""Rules on criteria that the cheap judge failed on, or was not asked a second time: against sums in plain Python."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.rules.cascades.evaluation import Costs, Evaluation, evaluate, for_choosing
from tasks.rules.cascades.rules import CandidateRule, PairedVerdicts, When, candidates
from tests.tasks.rules.cascades.worlds import noise

ALONE, WEIGHT = CandidateRule("cheap alone", When()), CandidateRule("w", When(weight_above=7.0))
DISAGREEMENT = CandidateRule("d", When(disagreement=True))
BOTH = CandidateRule("d or w", When(disagreement=True, weight_above=7.0))


def with_failures(paired: PairedVerdicts, share: float) -> PairedVerdicts:
    """The cheap judge fails on a share of the criteria, both times."""
    failed = np.random.default_rng(7).random(len(paired.strong)) < share
    first = np.where(failed[:, None], np.nan, paired.facts.first)
    return replace(paired, facts=replace(paired.facts, first=first))


def without_second(paired: PairedVerdicts, share: float) -> PairedVerdicts:
    """The cheap judge was not asked a second time about a share of the criteria."""
    has_second = np.random.default_rng(8).random(len(paired.strong)) >= share
    first = paired.facts.first.copy()
    first[~has_second, 1] = np.nan
    return replace(paired, facts=replace(paired.facts, first=first), has_second=has_second)


def evaluated(paired: PairedVerdicts, *tried: CandidateRule) -> list[Evaluation]:
    return evaluate(paired, tried, Costs(None, None), 200)


def held_out(paired: PairedVerdicts) -> list[int]:
    """The places of the criteria that figures are of."""
    choosing = for_choosing(paired.tasks)
    return [i for i, task in enumerate(paired.task) if not choosing[task]]


def test_what_the_cheap_judge_failed_on_is_escalated_by_each_rule_and_counts() -> None:
    paired = with_failures(noise(11, 40), 0.2)
    here = held_out(paired)
    by_weight, by_disagreement = (each.held_out for each in evaluated(paired, WEIGHT, DISAGREEMENT))
    first, weights = paired.facts.first, paired.facts.weights
    goes = [bool(np.isnan(first[i, 0]) or weights[i] > 7) for i in here]
    assert len(here) == by_weight.n
    assert pytest.approx(1_000 * sum(goes) / len(here)) == by_weight.strong_calls
    kept = [bool(first[i, 0] == first[i, 1]) for i in here]  # not where it failed: NaN equals nothing
    assert pytest.approx(1 - sum(kept) / len(here)) == by_disagreement.share.value


def test_the_cheap_judge_alone_escalates_nothing_and_does_not_agree_where_it_failed() -> None:
    paired = with_failures(noise(12, 40), 0.2)
    (alone,) = (each.held_out for each in evaluated(paired, ALONE))
    decisions = [(paired.facts.first[i, 0], paired.strong[i]) for i in held_out(paired)]
    agreed = sum(bool(cheap == strong) for cheap, strong in decisions) / len(decisions)
    f1 = [
        2 * sum(c == s == label for c, s in decisions)
        / (sum(c == label for c, _ in decisions) + sum(s == label for _, s in decisions)) for label in (0.0, 1.0)
    ]  # fmt: skip
    by_chance = sum(
        sum(c == label for c, _ in decisions) * sum(s == label for _, s in decisions) for label in (0.0, 1.0)
    ) / len(decisions) ** 2  # fmt: skip
    assert (0.0, len(decisions)) == (alone.share.value, alone.n)
    figures = (alone.agreement.value, alone.macro_f1.value, alone.kappa.value)
    assert pytest.approx((agreed, sum(f1) / 2, (agreed - by_chance) / (1 - by_chance))) == figures
    whole = [
        response for response in set(paired.response[held_out(paired)].tolist())
        if not np.isnan(paired.facts.first[paired.response == response, 0]).any()
    ]  # fmt: skip
    assert (len(whole), True) == (alone.ranking.n_responses, alone.ranking.is_small)


def test_a_missing_second_verdict_leaves_rules_that_do_not_look_at_it_as_they_are() -> None:
    full = noise(13, 120)
    some = without_second(full, 0.2)
    assert evaluated(full, ALONE, WEIGHT) == evaluated(some, ALONE, WEIGHT)


def test_a_rule_with_disagreement_counts_only_criteria_with_a_second_verdict() -> None:
    paired = without_second(noise(14, 120), 0.2)
    here = [i for i in held_out(paired) if paired.has_second[i]]
    weight, both = (each.held_out for each in evaluated(paired, WEIGHT, BOTH))
    goes = [
        bool(paired.facts.first[i, 0] != paired.facts.first[i, 1] or paired.facts.weights[i] > 7) for i in here
    ]  # fmt: skip
    assert len(here) == both.n
    assert pytest.approx(sum(goes) / len(here)) == both.share.value
    assert (180, False) == (weight.ranking.n_responses, weight.ranking.is_small)
    # Of 15 criteria all have a second verdict in 3.5 % of the responses.
    assert 0 < both.ranking.n_responses < 20
    assert both.ranking.is_small


def test_a_rule_that_nothing_can_be_replayed_for_is_unknown_and_never_the_cheapest() -> None:
    paired = without_second(noise(15, 40), 1.1)
    unknown, known = evaluated(paired, DISAGREEMENT, WEIGHT)
    assert (0, None, None) == (unknown.held_out.n, unknown.held_out.agreement.value, unknown.held_out.strong_calls)
    assert unknown.expense > known.expense


def test_failures_do_not_make_a_category_one_in_which_the_cheap_judge_errs() -> None:
    paired = noise(16, 40)
    names, first = np.array(["a", "b"])[paired.task % 2], paired.strong.copy()
    first[(names == "a") & (np.arange(len(first)) % 3 == 0)] = np.nan
    wrong = (names == "b") & (np.arange(len(first)) % 10 == 0)
    first[wrong] = 1.0 - first[wrong]
    facts = replace(paired.facts, first=first[:, None], categories=names)
    tried = candidates(replace(paired, facts=facts), has_repetitions=False)
    assert "weight above 1 or category b" in {each.name for each in tried}
