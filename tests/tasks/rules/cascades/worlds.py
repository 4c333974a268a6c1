"""Made-up verdicts of two judges with a known truth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tasks.rules.cascades.evaluation import Bound, Costs, evaluate, picked
from tasks.rules.cascades.rules import CandidateRule, Facts, PairedVerdicts, When

CATEGORIES = np.array(["Accuracy", "Clarity", "Depth", "Style"])


def noise(
    seed: int,
    n_tasks: int,
    *,
    n_criteria: int = 15,
    n_models: int = 3,
    errs: float = 0.12,
) -> PairedVerdicts:
    """Verdicts with errors that are correlated within a task, but independent of weight, category
    and confidence.
    """
    generator = np.random.default_rng(seed)
    shape = (n_tasks, n_models, n_criteria)
    strong = (generator.random(shape) < 0.6).astype(np.float64)
    error_rates = generator.beta(errs * 8, (1 - errs) * 8, (n_tasks, 1, 1, 1))
    is_wrong = generator.random((*shape, 2)) < error_rates
    cheap = np.where(is_wrong, 1.0 - strong[..., None], strong[..., None])
    weights = np.broadcast_to(
        generator.integers(1, 11, (n_tasks, 1, n_criteria)), shape
    )
    categories = CATEGORIES[generator.integers(0, 4, (n_tasks, 1, n_criteria))]
    task, model, _ = np.indices(shape)
    response = (task * n_models + model).ravel()
    no_names = np.full(strong.size, "")
    facts = Facts(
        first=cheap.reshape(-1, 2),
        weights=weights.ravel().astype(np.float64),
        categories=np.broadcast_to(categories, shape).ravel(),
        confidence=generator.random(strong.size),
        probability=np.full(strong.size, np.nan),
        severities=no_names,
        kinds=no_names,
    )
    return PairedVerdicts(
        facts=facts,
        strong=strong.ravel(),
        task=task.ravel(),
        response=response,
        tasks=tuple(f"{seed}-{index}" for index in range(n_tasks)),
        task_of_response=task[..., 0].ravel(),
        model_of_response=model[..., 0].ravel(),
        models=tuple(f"model-{index}" for index in range(n_models)),
        offset=np.zeros(n_tasks * n_models),
        denominator=np.bincount(response, facts.weights),
        has_second=np.ones(strong.size, dtype=np.bool_),
    )


class Outcome(NamedTuple):
    """The picked rule, whether its held-out interval covers the true agreement, and whether it
    keeps the bound.
    """

    rule: str
    is_covered: bool
    is_within: bool


def picked_outcome(
    paired: PairedVerdicts,
    candidates: Sequence[CandidateRule],
    bound: Bound,
    resamples: int,
    errs: float = 0.12,
) -> Outcome:
    """Return the outcome of the picked rule in a world of `noise`, against the truth.

    Without `disagreement`, the share that a rule escalates does not depend on errors. A verdict
    that stays with the cheap judge is wrong with the mean probability `errs`; if repetitions must
    agree, with the probability that both are wrong: the mean square of a beta distribution.
    """
    evaluation = picked(
        evaluate(paired, candidates, Costs(0.001, 0.02), resamples), bound
    )
    when = evaluation.candidate.when
    truth = 1.0
    if when is not None:
        error_rate = errs
        if when.disagreement:
            error_rate = errs * (8 * errs + 1) / 9
        truth = 1.0 - error_rate * (1.0 - _share(when))
    low = evaluation.held_out["agreement_ci_low"]
    high = evaluation.held_out["agreement_ci_high"]
    return Outcome(str(when), low <= truth <= high, truth >= bound.lowest)


def _share(when: When) -> float:
    """The expected share that a rule escalates, whatever the cheap judge decides."""
    stays = 1.0
    if when.weight_above is not None:
        stays *= min(10.0, when.weight_above) / 10
    if when.categories:
        stays *= 1.0 - len(when.categories) / len(CATEGORIES)
    if when.confidence_below is not None:
        stays *= 1.0 - when.confidence_below
    return 1.0 - stays
