"""Stopping: the share of wrong decisions, the savings, and the bias of estimates.

Differences of tasks are made up in several shapes, or real (`--real`: a folder with real verdicts).
Each family of comparisons is looked at after every block until the last task, even if it is settled
before, and counts as wrong if any look at any of its comparisons decides wrongly.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np

from tasks.rules.stopping import Rule, alpha_of_each, block_ends, unbiased_means
from tests.benchmarks.figures import arguments, markdown

Floats = np.ndarray
Dice = np.random.Generator
BLOCK = 20
LEAST = 0.02
ALPHA = 0.05
_AT_ONCE = 4_000


def _steps(dice: Dice, shape: tuple[int, ...]) -> Floats:
    return dice.choice([-0.2, -0.1, 0.0, 0.1, 0.2], size=shape, p=[0.1, 0.2, 0.4, 0.2, 0.1])


def _sparse(
    share: float, values: Callable[[Dice, tuple[int, ...]], Floats]
) -> Callable[..., Floats]:
    return lambda dice, shape: (dice.random(shape) < share) * values(dice, shape)


def _bounded(dice: Dice, shape: tuple[int, ...]) -> Floats:
    """Differences of scores between 0 and 1 of two models whose responses meet most criteria."""
    return dice.beta(2.0, 0.7, shape) - dice.beta(2.0, 0.7, shape)


Draw = Callable[[Dice, tuple[int, ...]], Floats]
WORLDS: dict[str, Draw] = {
    "normal": lambda dice, shape: dice.normal(0.0, 0.15, shape),
    "bounded": _bounded,
    "in steps of 0.1": _steps,
    "3 % differ, normal": _sparse(0.03, lambda dice, shape: dice.normal(0.0, 0.3, shape)),
    "10 % differ, normal": _sparse(0.10, lambda dice, shape: dice.normal(0.0, 0.3, shape)),
    "10 % differ, t with 2 degrees": _sparse(
        0.10, lambda dice, shape: 0.2 * dice.standard_t(2, shape)
    ),
    "t with 3 degrees": lambda dice, shape: 0.1 * dice.standard_t(3, shape),
    "exponential": lambda dice, shape: 0.15 * (dice.exponential(1.0, shape) - 1.0),
    "few near 1": lambda dice, shape: dice.beta(0.15, 0.85, shape) - 0.15,
    "10 % differ, exponential": _sparse(
        0.10, lambda dice, shape: 0.3 * (dice.exponential(1.0, shape) - 1.0)
    ),
    "lognormal": lambda dice, shape: 0.1 * (dice.lognormal(0.0, 1.0, shape) - np.exp(0.5)),
}
"""World -> differences of tasks with mean 0; the last four are skewed, which a model compared with
itself never is.
"""


def _jumps(share: float, size: float, spread: float, mean: float = 0.0) -> Draw:
    """A share of the tasks differs by about `size`; the others vary around the value that gives the
    mean.
    """
    return lambda dice, shape: (
        dice.normal(mean - share * size, spread, shape) + size * (dice.random(shape) < share)
    )


MIXTURES: dict[str, Draw] = {
    "3 % differ by 0.5, others little": _jumps(0.03, 0.5, 0.05),
    "5 % differ by 0.5, others little": _jumps(0.05, 0.5, 0.05),
    "5 % differ by 0.5, others hardly": _jumps(0.05, 0.5, 0.02),
    "10 % differ by 0.5, others little": _jumps(0.10, 0.5, 0.05),
    "10 % differ by -0.5, others little": _jumps(0.10, -0.5, 0.05),
    "4 % differ by 0.7, others more": _jumps(0.04, 0.7, 0.10),
}
"""World -> differences with mean 0: until the first large one, the others look like a small,
certain difference.
"""

BORDER: dict[str, Draw] = {
    "normal": lambda dice, shape: dice.normal(LEAST, 0.05, shape),
    "in steps of 0.025": lambda dice, shape: LEAST + 0.25 * _steps(dice, shape),
    "5 % differ by 0.4 on average": _sparse(0.05, lambda dice, shape: dice.normal(0.4, 0.1, shape)),
    "10 % differ, exponential": _sparse(0.10, lambda dice, shape: dice.exponential(0.2, shape)),
    "skewed to the right": lambda dice, shape: LEAST * dice.exponential(1.0, shape),
    "skewed to the left": lambda dice, shape: LEAST + 0.05 * (1.0 - dice.exponential(1.0, shape)),
    "3 % differ by 0.67, others hardly": _jumps(0.03, 0.67, 0.02, LEAST),
}
"""World -> differences with mean 0.02, the border of `equal`: there `equal` is wrong most often."""

RARE: dict[str, Draw] = {
    "3 % differ by 1, others little": _jumps(0.03, 1.0, 0.05),
    "5 % differ by 1, others little": _jumps(0.05, 1.0, 0.05),
    "lognormal, sigma 1.5": lambda dice, shape: (
        0.1 * (dice.lognormal(0.0, 1.5, shape) - np.exp(1.125))
    ),
}
"""World -> differences with mean 0 that violate the rule's assumptions: the rare ones are too
large.
"""


def rule(n_tasks: int, n_comparisons: int = 1, block: int = BLOCK) -> Rule:
    """The rule of one of `n_comparisons` comparisons."""
    return Rule("different", alpha_of_each(ALPHA, n_comparisons), LEAST, block_ends(n_tasks, block))


def false_share(
    draw: Callable[[Dice, tuple[int, ...]], Floats],
    n_tasks: int,
    n_comparisons: int,
    families: int,
    seed: int,
    block: int = BLOCK,
) -> tuple[float, float]:
    """The share of families with any false `different`, and with any false `equal`, at any look."""
    dice = np.random.default_rng(seed)
    of_each = rule(n_tasks, n_comparisons, block)
    n = families * n_comparisons
    parts = [min(_AT_ONCE, n - start) for start in range(0, n, _AT_ONCE)]
    decisions = np.concatenate(
        [_ever(draw(dice, (n_tasks, size)), of_each) for size in parts], axis=1
    )
    differs, equals = decisions.reshape(2, families, -1).any(axis=2).mean(axis=1)
    return float(differs), float(equals)


def _ever(sample: Floats, of_each: Rule) -> tuple[Floats, Floats]:
    """For each comparison: whether any look calls it different, and whether any look calls it
    equal.
    """
    differs, equals = (np.zeros(sample.shape[1], dtype=np.bool_) for _ in range(2))
    for end in of_each.ends:
        low, high = of_each.ends_at(sample[:end]).T
        differs |= (low > 0.0) | (high < 0.0)
        equals |= (low > -LEAST) & (high < LEAST)
    return differs, equals


def models_beside_each_other(n_models: int, n_tasks: int, families: int, seed: int) -> float:
    """The share of families with any false `different` among all pairs of equally good models."""
    dice = np.random.default_rng(seed)
    first, second = np.triu_indices(n_models, 1)
    of_each = rule(n_tasks, len(first))
    wrong = 0
    for _ in range(families):
        scores = dice.beta(2.0, 0.7, (n_tasks, 1)) + dice.normal(0.0, 0.12, (n_tasks, n_models))
        wrong += bool(_ever(scores[:, first] - scores[:, second], of_each)[0].any())
    return wrong / families


def tasks_until_decision(sample: Floats, of_each: Rule) -> tuple[Floats, Floats, Floats]:
    """For each comparison: the number of tasks until it is settled, whether as different, and
    whether as equal.
    """
    tasks = np.full(sample.shape[1], of_each.ends[-1])
    decided = np.zeros(sample.shape[1], dtype=np.int64)
    for end in of_each.ends:
        low, high = of_each.ends_at(sample[:end]).T
        now = np.where(
            (low > 0.0) | (high < 0.0), 1, np.where((low > -LEAST) & (high < LEAST), 2, 0)
        )
        new = (decided == 0) & (now > 0)
        tasks[new] = end
        decided[new] = now[new]
    return tasks, decided == 1, decided == 2


def bias(true: float, n_tasks: int, replications: int, seed: int) -> dict[str, tuple[float, float]]:
    """Mean error of each figure that is reported of two models after stopping, with its standard
    error.
    """
    dice = np.random.default_rng(seed)
    of_each = rule(n_tasks)
    errors_of: dict[str, list[float]] = {
        "difference": [],
        "unbiased difference": [],
        "score": [],
        "unbiased score": [],
    }
    for _ in range(replications):
        scores = dice.normal([0.5 + true, 0.5], 0.11, (n_tasks, 2)) + dice.normal(
            0.0, 0.15, (n_tasks, 1)
        )
        differences = scores[:, 0] - scores[:, 1]
        end = int(tasks_until_decision(differences[:, None], of_each)[0][0])
        figures = np.column_stack([differences, scores[:, 0]])[:end]
        unbiased = unbiased_means(differences[:end], figures, np.zeros(end), of_each, orders=200)
        errors = (*(figures.mean(axis=0) - (true, 0.5 + true)), *(unbiased - (true, 0.5 + true)))
        for name, error in zip(
            ("difference", "score", "unbiased difference", "unbiased score"), errors, strict=True
        ):
            errors_of[name].append(float(error))
    root = np.sqrt(replications)
    return {
        name: (float(np.nanmean(of)), float(np.nanstd(of) / root)) for name, of in errors_of.items()
    }


def bias_of_three(n_tasks: int, replications: int, seed: int) -> tuple[float, float, float, float]:
    """Mean error of the score of a model compared with two others: plain, and unbiased given its
    last comparison.
    """
    dice = np.random.default_rng(seed)
    of_each = rule(n_tasks, 3)
    true = np.array([0.58, 0.50, 0.52])
    errors = []
    for _ in range(replications):
        scores = dice.normal(true, 0.11, (n_tasks, 3)) + dice.normal(0.0, 0.15, (n_tasks, 1))
        others = scores[:, :1] - scores[:, 1:]
        ends = tasks_until_decision(others, of_each)[0]
        last = int(np.argmax(ends))
        end = int(ends.max())
        unbiased = unbiased_means(
            others[:end, last], scores[:end, :1], np.zeros(end), of_each, orders=200
        )[0]
        errors.append((scores[:end, 0].mean() - true[0], unbiased - true[0]))
    mean = np.nanmean(errors, axis=0)
    spread = np.nanstd(errors, axis=0) / np.sqrt(replications)
    return float(mean[0]), float(spread[0]), float(mean[1]), float(spread[1])


def real_scores(folder: Path) -> dict[str, dict[str, float]]:
    """Model -> task -> its score (equation 1), from real verdicts and rubrics."""
    import polars as pl

    weights: dict[tuple[str, str], float] = {}
    positive: dict[str, float] = {}
    for row in pl.read_parquet(
        folder / "finance_hard.parquet", columns=["task", "rubric"]
    ).iter_rows(named=True):
        for criterion in row["rubric"]:
            notes = criterion["annotations"]
            weight = float(notes[notes["weight_class"].replace(" ", "_") + "_weight"])
            weights[row["task"], criterion["id"]] = weight
            positive[row["task"]] = positive.get(row["task"], 0.0) + max(weight, 0.0)
    errors_of: dict[str, dict[str, float]] = {}
    for line in (
        (folder / "verdicts_finance_hard_3models.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        verdict = json.loads(line)
        key = verdict["task"], verdict["criterion"]
        of_model = errors_of.setdefault(verdict["model"], {})
        points = weights[key] * verdict["criteria_met"] / positive[verdict["task"]]
        of_model[verdict["task"]] = of_model.get(verdict["task"], 0.0) + points
    return errors_of


def savings(
    scores: dict[str, dict[str, float]], orders: int, seed: int, block: int
) -> Iterator[tuple[str, float, float, float, float, float]]:
    """For each pair of models: the difference; tasks until settled (5 %, median, 95 %); shares
    different and equal.
    """
    labels = sorted(scores)
    tasks = sorted(set.intersection(*(set(scores[label]) for label in labels)))
    values = np.array([[scores[label][task] for label in labels] for task in tasks])
    dice = np.random.default_rng(seed)
    sample = np.argsort(dice.random((orders, len(tasks))), axis=1).T
    pairs = list(combinations(range(len(labels)), 2))
    of_each = rule(len(tasks), len(pairs), block)
    for a, b in pairs:
        differences = values[:, a] - values[:, b]
        n_tasks_used, differs, _ = tasks_until_decision(differences[sample], of_each)
        low, median, high = np.quantile(n_tasks_used, (0.05, 0.5, 0.95))
        name = f"{chr(65 + a)} - {chr(65 + b)}"
        yield (
            name,
            float(differences.mean()),
            float(low),
            float(median),
            float(high),
            float(differs.mean()),
        )


def _false_rows(families: dict[int, int], n_tasks: int) -> Iterator[Sequence[object]]:
    for kind, worlds in (("different", WORLDS | MIXTURES | RARE), ("equal", BORDER)):
        for name, draw in worlds.items():
            shares = (
                false_share(draw, n_tasks, n, families[n], 11)[kind == "equal"] for n in families
            )
            yield f"`{kind}`: {name}", *(f"{100 * share:.1f}" for share in shares)
    share = models_beside_each_other(20, n_tasks, families[190], 5)
    yield "`different`: 20 equally good models, all pairs", "", "", f"{100 * share:.1f}"


def _mixture_rows(
    replications: int, n_tasks: int, spreads: Sequence[float]
) -> Iterator[Sequence[object]]:
    for size, share in product((0.3, 0.5, 0.7, 1.0), (0.03, 0.05, 0.1)):
        cells = []
        for draw in (_jumps(share, size, spread) for spread in spreads):
            wrong = (
                false_share(draw, n_tasks, 1, replications, 13, block)[0]
                for block in (5, 10, BLOCK)
            )
            cells.append(" / ".join(f"{100 * each:.1f}" for each in wrong))
        yield share, size, *cells


def _power_rows(replications: int, comparisons: Sequence[int]) -> Iterator[Sequence[object]]:
    truths = {
        1_100: (0.0, 0.02, 0.03),
        300: (0.05, 0.075),
        100: (0.075, 0.1),
    }
    for n_tasks, true in (
        (n_tasks, true) for n_tasks, several in truths.items() for true in several
    ):
        sample = np.random.default_rng(17).normal(true, 0.15, (n_tasks, replications // 2))
        n_tasks_used = (
            tasks_until_decision(sample, rule(n_tasks, n_comparisons))
            for n_comparisons in comparisons
        )
        yield (
            true,
            f"{n_tasks:,}",
            *(
                f"{np.median(tasks):.0f} ({100 * differs.mean():.0f} / {100 * equals.mean():.0f})"
                for tasks, differs, equals in n_tasks_used
            ),
        )


def _bias_rows(replications: int) -> Iterator[Sequence[object]]:
    def cell(mean: float, error: float) -> str:
        return f"{1e3 * mean:+.2f} ({1e3 * error:.2f})"

    for true in (0.0, 0.03, 0.06, 0.1):
        yield true, *(cell(*each) for each in bias(true, 100, replications, 23).values())
    plain, plain_error, unbiased, error = bias_of_three(100, replications, 29)
    yield "one of three models", "", "", cell(plain, plain_error), cell(unbiased, error)


def _savings_rows(folder: Path, orders: int, block: int) -> Iterator[Sequence[object]]:
    for name, true, *tasks, differs in savings(real_scores(folder), orders, 31, block):
        yield name, f"{true:+.3f}", *(f"{each:.0f}" for each in tasks), f"{100 * differs:.1f}"


def main() -> None:
    """Print the tables."""
    given = arguments(
        __doc__,
        replications=2_000,
        tasks=200,
        real=(Path, "a folder with finance_hard.parquet and verdicts of three models"),
    )
    n = given.replications
    n_tasks = given.tasks
    for block in (20, 5) if given.real else ():
        print(
            f"\nReal verdicts of 3 models on 100 tasks, {n:,} random orders, a look after every"
            f" {block}"
        )
        header = [
            "pair",
            "difference",
            "tasks until settled: 5 %",
            "median",
            "95 %",
            "different in %",
        ]
        markdown(header, _savings_rows(given.real, n, block))
    print("\nMean error after stopping (100 tasks), times 1,000, with its standard error")
    markdown(
        ["true difference", "difference", "unbiased difference", "score", "unbiased score"],
        _bias_rows(n),
    )
    print(
        "\nTasks until settled (median), and comparisons called different / equal in %; standard"
        " deviation 0.15"
    )
    header = ["true difference", "tasks", "1 comparison", "10 comparisons", "190 comparisons"]
    markdown(header, _power_rows(n, (1, 10, 190)))
    print(f"\nFalsely called different in %, {n_tasks} tasks, a look after every 5 / 10 / {BLOCK}")
    spreads = (0.02, 0.05, 0.1, 0.15)
    header = ["share of tasks", "differ by", *(f"others {spread}" for spread in spreads)]
    markdown(header, _mixture_rows(n, n_tasks, spreads))
    families = {
        1: n * 2,
        10: n,
        190: max(1, n // 4),
    }
    print(f"\nFamilies with any false decision in %, {n_tasks} tasks, a look after every {BLOCK}")
    header = ["world", *(f"{each} comparisons ({families[each]:,})" for each in families)]
    markdown(header, _false_rows(families, n_tasks))


if __name__ == "__main__":
    main()
