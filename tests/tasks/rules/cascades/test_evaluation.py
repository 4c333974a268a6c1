"""Rules are chosen on one half of the tasks and measured honestly on the other."""

import numpy as np
import pytest

from tasks.rules.cascades.evaluation import Bound, Costs, evaluate, for_choosing, front, kendall_tau, picked
from tasks.rules.cascades.rules import CandidateRule, When, candidates
from tests.tasks.rules.cascades.worlds import noise

FREE = Costs(None, None)
PRICED = Costs(0.001, 0.02)


def test_kendalls_tau_is_that_of_the_textbook() -> None:
    # Kendall, "The treatment of ties in ranking problems" (1945): (P - Q) / sqrt((n0 - n1)(n0 - n2)).
    def one(a: list[float], b: list[float]) -> float:
        return float(kendall_tau(np.array(a), np.array(b)))

    assert [1.0, -1.0, pytest.approx(4 / 6)] == [
        one([1, 2, 3, 4], other) for other in ([1, 2, 3, 4], [4, 3, 2, 1], [1, 3, 2, 4])
    ]
    assert [1.0, pytest.approx(2 / np.sqrt(2 * 3))] == [one([1, 1, 2], other) for other in ([1, 1, 2], [1, 2, 3])]
    assert np.isnan(one([1, 1], [1, 2]))
    assert 1.0 == one([1, 2, np.nan], [1, 2, 3])


def test_the_strong_judge_alone_agrees_with_itself_and_costs_itself() -> None:
    paired = noise(1, 40)
    (alone,) = evaluate(paired, [CandidateRule("strong alone", None)], PRICED, 500)

    assert (1.0, 1.0, 1.0) == alone.held_out.agreement == alone.held_out.kappa
    assert 20.0 == pytest.approx(alone.held_out.cost_usd.value)
    assert (1_000.0, 0.0) == (alone.held_out.strong_calls, alone.held_out.cheap_calls)
    assert 1.0 == alone.held_out.ranking.tau.value
    assert 0.0 == alone.held_out.ranking.change.value


def test_comparing_repetitions_costs_two_calls_and_the_escalated_share() -> None:
    paired = noise(2, 40)
    (evaluated,) = evaluate(paired, [CandidateRule("d", When(disagreement=True))], PRICED, 500)

    share = evaluated.held_out.share.value or 0
    assert 0 < share < 1
    assert pytest.approx(1_000 * (2 * 0.001 + share * 0.02)) == evaluated.held_out.cost_usd.value
    assert len(paired.strong) == evaluated.held_out.n + evaluated.chosen_on.n


def test_the_cheapest_rule_within_the_bound_is_picked_and_the_strong_judge_where_there_is_none() -> None:
    paired = noise(3, 120)
    half = for_choosing(paired.tasks)
    evaluated = evaluate(paired, candidates(paired.of_tasks(half), has_repetitions=True), PRICED, 500)

    bound = Bound("agreement", 0.9)
    chosen = picked(evaluated, bound)
    assert (chosen.chosen_on.agreement.low or 0.0) >= 0.9
    cheaper = [each for each in evaluated if each.expense[0] < chosen.expense[0]]
    assert all((each.chosen_on.agreement.low or 0.0) < 0.9 for each in cheaper)
    assert picked(evaluated, Bound("agreement", 1.0)).candidate.when is None

    shown = front(evaluated, "agreement")
    values = [each.value("agreement") for each in shown]
    assert sorted(values) == values
    assert 1.0 == shown[-1].value("agreement")


def test_few_tasks_that_differ_do_not_pass_for_certainty() -> None:
    paired = noise(4, 40, errs=0.001)
    (cheap,) = evaluate(paired, [CandidateRule("cheap alone", When())], PRICED, 500)

    assert cheap.chosen_on.differing < 5
    # Exact: 0 of 20 tasks leave up to 17 % possible.
    assert 0 < (cheap.chosen_on.agreement.low or 0.0) < 0.9
    assert not Bound("kappa", 0.5).is_kept(cheap)


@pytest.mark.parametrize("n", [4, 8, 95, 96])
def test_halves_are_halves_whatever_the_order_of_the_tasks(n: int) -> None:
    tasks = [f"task-{index}" for index in range(n)]
    chosen = for_choosing(tasks)
    assert n // 2 == chosen.sum()
    assert chosen[::-1].tolist() == for_choosing(tasks[::-1]).tolist()
