"""Made-up verdicts of two judges with a known truth."""

import numpy as np

from tasks.rules.cascades.rules import Facts, PairedVerdicts

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
