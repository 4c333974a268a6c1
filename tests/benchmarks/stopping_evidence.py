"""Stopping: the share of wrong decisions, the savings, and the bias of estimates.

Differences of tasks are made up in several shapes, or real (`--real`: a folder with real verdicts).
Each family of comparisons is looked at after every block until the last task, even if it is settled
before, and counts as wrong if any look at any of its comparisons decides wrongly.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tasks.rules.stopping import Rule, alpha_of_each, block_ends, unbiased_means
from tests.benchmarks.figures import parse_arguments, print_markdown

Floats = np.ndarray
Dice = np.random.Generator
Draw = Callable[[Dice, tuple[int, ...]], Floats]
BLOCK = 20
"""Tasks from one look to the next."""
LEAST = 0.02
"""A difference below this one, either way, is called `equal`."""
ALPHA = 0.05
"""The bound on the share of families with a false decision."""
_COLUMNS_AT_ONCE = 4_000


def _steps(dice: Dice, shape: tuple[int, ...]) -> Floats:
    return dice.choice(
        [-0.2, -0.1, 0.0, 0.1, 0.2],
        size=shape,
        p=[0.1, 0.2, 0.4, 0.2, 0.1],
    )


def _bounded(dice: Dice, shape: tuple[int, ...]) -> Floats:
    """Return differences of scores between 0 and 1 of two models whose responses meet most
    criteria.
    """
    return dice.beta(2.0, 0.7, shape) - dice.beta(2.0, 0.7, shape)


def _sparse(share: float, values: Draw) -> Draw:
    """A share of the tasks differs by these values, the others not at all."""
    return lambda dice, shape: (dice.random(shape) < share) * values(dice, shape)


def _jumps(share: float, size: float, spread: float, mean: float = 0.0) -> Draw:
    """A share of the tasks differs by about `size`; the others vary around the value that gives the
    mean.
    """
    return lambda dice, shape: (
        dice.normal(mean - share * size, spread, shape)
        + size * (dice.random(shape) < share)
    )


WORLDS: dict[str, Draw] = {
    "normal": lambda dice, shape: dice.normal(0.0, 0.15, shape),
    "bounded": _bounded,
    "in steps of 0.1": _steps,
    "3 % differ, normal": _sparse(
        0.03,
        lambda dice, shape: dice.normal(0.0, 0.3, shape),
    ),
    "10 % differ, normal": _sparse(
        0.10,
        lambda dice, shape: dice.normal(0.0, 0.3, shape),
    ),
    "10 % differ, t with 2 degrees": _sparse(
        0.10,
        lambda dice, shape: 0.2 * dice.standard_t(2, shape),
    ),
    "t with 3 degrees": lambda dice, shape: 0.1 * dice.standard_t(3, shape),
    "exponential": lambda dice, shape: 0.15 * (dice.exponential(1.0, shape) - 1.0),
    "few near 1": lambda dice, shape: dice.beta(0.15, 0.85, shape) - 0.15,
    "10 % differ, exponential": _sparse(
        0.10,
        lambda dice, shape: 0.3 * (dice.exponential(1.0, shape) - 1.0),
    ),
    "lognormal": lambda dice, shape: (
        0.1 * (dice.lognormal(0.0, 1.0, shape) - np.exp(0.5))
    ),
}
"""World -> differences of tasks with mean 0; the last four are skewed, which a model compared with
itself never is.
"""

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
    "5 % differ by 0.4 on average": _sparse(
        0.05,
        lambda dice, shape: dice.normal(0.4, 0.1, shape),
    ),
    "10 % differ, exponential": _sparse(
        0.10,
        lambda dice, shape: dice.exponential(0.2, shape),
    ),
    "skewed to the right": lambda dice, shape: LEAST * dice.exponential(1.0, shape),
    "skewed to the left": lambda dice, shape: (
        LEAST + 0.05 * (1.0 - dice.exponential(1.0, shape))
    ),
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


class Decisions(NamedTuple):
    """Masks over comparisons: those that are called different, and those that are called equal; or
    the shares of families with such comparisons.
    """

    differs: Floats
    equals: Floats


def rule(n_tasks: int, n_comparisons: int = 1, block: int = BLOCK) -> Rule:
    """Return the rule of one of `n_comparisons` comparisons."""
    return Rule(
        "different",
        alpha_of_each(ALPHA, n_comparisons),
        LEAST,
        block_ends(n_tasks, block),
    )


def decisions_at(sample: Floats, comparison_rule: Rule, end: int) -> Decisions:
    """Return what the look after `end` tasks decides."""
    low, high = comparison_rule.intervals_after(sample[:end]).T
    return Decisions((low > 0.0) | (high < 0.0), (low > -LEAST) & (high < LEAST))


def decisions_of_any_look(sample: Floats, comparison_rule: Rule) -> Decisions:
    """Return what any look decides."""
    looks = [
        decisions_at(sample, comparison_rule, end) for end in comparison_rule.ends
    ]
    differs, equals = np.any(looks, axis=0)
    return Decisions(differs, equals)


def false_share(
    draw: Draw,
    n_tasks: int,
    n_comparisons: int,
    n_families: int,
    seed: int,
    block: int = BLOCK,
) -> Decisions:
    """Return the share of families with any false `different`, and with any false `equal`, at any
    look.
    """
    dice = np.random.default_rng(seed)
    comparison_rule = rule(n_tasks, n_comparisons, block)
    n = n_families * n_comparisons
    parts = []
    for start in range(0, n, _COLUMNS_AT_ONCE):
        sample = draw(dice, (n_tasks, min(_COLUMNS_AT_ONCE, n - start)))
        parts.append(decisions_of_any_look(sample, comparison_rule))
    decisions = np.concatenate(parts, axis=1).reshape(2, n_families, n_comparisons)
    differs, equals = decisions.any(axis=2).mean(axis=1)
    return Decisions(differs, equals)


def false_share_of_models(
    n_models: int,
    n_tasks: int,
    n_families: int,
    seed: int,
) -> float:
    """Return the share of families with any false `different` among all pairs of equally good
    models.
    """
    dice = np.random.default_rng(seed)
    first, second = np.triu_indices(n_models, 1)
    pair_rule = rule(n_tasks, len(first))
    n_wrong = 0
    for _ in range(n_families):
        task_means = dice.beta(2.0, 0.7, (n_tasks, 1))
        scores = task_means + dice.normal(0.0, 0.12, (n_tasks, n_models))
        decisions = decisions_of_any_look(
            scores[:, first] - scores[:, second], pair_rule
        )
        n_wrong += bool(decisions.differs.any())
    return n_wrong / n_families


def tasks_until_decision(
    sample: Floats, comparison_rule: Rule
) -> tuple[Floats, Decisions]:
    """Return, for each comparison, the number of tasks until it is settled, and the decision."""
    n_comparisons = sample.shape[1]
    n_tasks = np.full(n_comparisons, comparison_rule.ends[-1])
    settled = Decisions(
        np.zeros(n_comparisons, dtype=np.bool_),
        np.zeros(n_comparisons, dtype=np.bool_),
    )
    for end in comparison_rule.ends:
        is_open = ~(settled.differs | settled.equals)
        decisions = decisions_at(sample, comparison_rule, end)
        newly_different = is_open & decisions.differs
        newly_equal = is_open & ~decisions.differs & decisions.equals
        n_tasks[newly_different | newly_equal] = end
        settled.differs[newly_different] = True
        settled.equals[newly_equal] = True
    return n_tasks, settled


class Bias(NamedTuple):
    """The mean error of an estimate, with its standard error."""

    mean: float
    standard_error: float


def bias_of(errors: Sequence[float] | Floats) -> Bias:
    return Bias(
        float(np.nanmean(errors)), float(np.nanstd(errors) / np.sqrt(len(errors)))
    )


def bias_of_two(
    true: float, n_tasks: int, replications: int, seed: int
) -> list[Bias]:
    """Return the bias of each figure of two models after stopping: their difference and the first
    one's score, each plain and unbiased.

    The order is: difference, unbiased difference, score, unbiased score.
    """
    dice = np.random.default_rng(seed)
    pair_rule = rule(n_tasks)
    truth = np.array([true, 0.5 + true])
    errors = []
    for _ in range(replications):
        model_scores = dice.normal([0.5 + true, 0.5], 0.11, (n_tasks, 2))
        scores = model_scores + dice.normal(0.0, 0.15, (n_tasks, 1))
        differences = scores[:, 0] - scores[:, 1]
        n_tasks_used, _ = tasks_until_decision(differences[:, None], pair_rule)
        end = int(n_tasks_used[0])
        figures = np.column_stack([differences, scores[:, 0]])[:end]
        unbiased = unbiased_means(
            differences[:end],
            figures,
            np.zeros(end),
            pair_rule,
            orders=200,
        )
        errors.append(
            np.column_stack([figures.mean(axis=0) - truth, unbiased - truth]).ravel()
        )
    return [bias_of(column) for column in np.transpose(errors)]


def bias_of_three(n_tasks: int, replications: int, seed: int) -> list[Bias]:
    """Return the bias of the score of a model compared with two others: plain, and unbiased given
    its last comparison.
    """
    dice = np.random.default_rng(seed)
    comparison_rule = rule(n_tasks, 3)
    true = np.array([0.58, 0.50, 0.52])
    errors = []
    for _ in range(replications):
        scores = dice.normal(true, 0.11, (n_tasks, 3)) + dice.normal(
            0.0,
            0.15,
            (n_tasks, 1),
        )
        differences = scores[:, :1] - scores[:, 1:]
        n_tasks_used, _ = tasks_until_decision(differences, comparison_rule)
        last = int(np.argmax(n_tasks_used))
        end = int(n_tasks_used.max())
        figures = scores[:end, :1]
        unbiased = unbiased_means(
            differences[:end, last],
            figures,
            np.zeros(end),
            comparison_rule,
            orders=200,
        )
        errors.append([figures.mean() - true[0], unbiased[0] - true[0]])
    return [bias_of(column) for column in np.transpose(errors)]


def real_scores(folder: Path) -> dict[str, dict[str, float]]:
    """Return model -> task -> its score (equation 1), from real verdicts and rubrics."""
    import polars as pl

    weights = {}
    positive_weights = defaultdict(float)
    rubrics = pl.read_parquet(
        folder / "finance_hard.parquet", columns=["task", "rubric"]
    )
    for row in rubrics.iter_rows(named=True):
        for criterion in row["rubric"]:
            notes = criterion["annotations"]
            weight = float(notes[notes["weight_class"].replace(" ", "_") + "_weight"])
            weights[row["task"], criterion["id"]] = weight
            positive_weights[row["task"]] += max(weight, 0.0)
    scores = defaultdict(lambda: defaultdict(float))
    path = folder / "verdicts_finance_hard_3models.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        verdict = json.loads(line)
        task_id = verdict["task"]
        points = weights[task_id, verdict["criterion"]] * verdict["criteria_met"]
        scores[verdict["model"]][task_id] += points / positive_weights[task_id]
    return scores


def savings(
    scores: dict[str, dict[str, float]],
    orders: int,
    seed: int,
    block: int,
) -> Iterator[Sequence[object]]:
    """Yield a row for each pair of models, which are called A, B, C and so on: their difference,
    tasks until settled (5 %, median, 95 %), and the percentage called different.
    """
    models = sorted(scores)
    task_ids = sorted(set.intersection(*(set(scores[model]) for model in models)))
    columns = [np.array([*map(scores[model].get, task_ids)]) for model in models]
    dice = np.random.default_rng(seed)
    sample = np.argsort(dice.random((orders, len(task_ids))), axis=1).T
    pairs = list(combinations(range(len(models)), 2))
    for first, second in pairs:
        differences = columns[first] - columns[second]
        n_tasks_used, decisions = tasks_until_decision(
            differences[sample],
            rule(len(task_ids), len(pairs), block),
        )
        quantiles = np.quantile(n_tasks_used, (0.05, 0.5, 0.95))
        yield (
            f"{chr(65 + first)} - {chr(65 + second)}",
            f"{differences.mean():+.3f}",
            *(f"{n_tasks:.0f}" for n_tasks in quantiles),
            f"{100 * decisions.differs.mean():.1f}",
        )


def _false_rows(families: dict[int, int], n_tasks: int) -> Iterator[Sequence[object]]:
    for kind, worlds in (("different", WORLDS | MIXTURES | RARE), ("equal", BORDER)):
        for name, draw in worlds.items():
            cells = []
            for n_comparisons, n_families in families.items():
                shares = false_share(
                    draw, n_tasks, n_comparisons, n_families, seed=11
                )
                share = shares.equals if kind == "equal" else shares.differs
                cells.append(f"{100 * share:.1f}")
            yield f"`{kind}`: {name}", *cells
    share = false_share_of_models(20, n_tasks, families[190], seed=5)
    yield (
        "`different`: 20 equally good models, all pairs",
        "",
        "",
        f"{100 * share:.1f}",
    )


def _mixture_rows(
    replications: int,
    n_tasks: int,
    spreads: Sequence[float],
) -> Iterator[Sequence[object]]:
    for size, share in product((0.3, 0.5, 0.7, 1.0), (0.03, 0.05, 0.1)):
        cells = []
        for spread in spreads:
            draw = _jumps(share, size, spread)
            false_percents = []
            for block in (5, 10, BLOCK):
                shares = false_share(
                    draw,
                    n_tasks,
                    1,
                    replications,
                    seed=13,
                    block=block,
                )
                false_percents.append(f"{100 * shares.differs:.1f}")
            cells.append(" / ".join(false_percents))
        yield share, size, *cells


def _power_rows(
    replications: int, comparisons: Sequence[int]
) -> Iterator[Sequence[object]]:
    truths = {
        1_100: (0.0, 0.02, 0.03),
        300: (0.05, 0.075),
        100: (0.075, 0.1),
    }
    for n_tasks, differences in truths.items():
        for true in differences:
            sample = np.random.default_rng(17).normal(
                true,
                0.15,
                (n_tasks, replications // 2),
            )
            cells = []
            for n_comparisons in comparisons:
                n_tasks_used, decisions = tasks_until_decision(
                    sample, rule(n_tasks, n_comparisons)
                )
                differs_percent = 100 * decisions.differs.mean()
                equals_percent = 100 * decisions.equals.mean()
                cells.append(
                    f"{np.median(n_tasks_used):.0f} ({differs_percent:.0f} / {equals_percent:.0f})"
                )
            yield true, f"{n_tasks:,}", *cells


def _bias_rows(replications: int) -> Iterator[Sequence[object]]:
    for true in (0.0, 0.03, 0.06, 0.1):
        yield true, *map(_bias_cell, bias_of_two(true, 100, replications, seed=23))
    plain_and_unbiased = bias_of_three(100, replications, seed=29)
    yield "one of three models", "", "", *map(_bias_cell, plain_and_unbiased)


def _bias_cell(bias: Bias) -> str:
    return f"{1e3 * bias.mean:+.2f} ({1e3 * bias.standard_error:.2f})"


def main():
    """Print the tables."""
    options = parse_arguments(
        __doc__,
        replications=2_000,
        tasks=200,
        real=(
            Path,
            "a folder with finance_hard.parquet and verdicts of three models",
        ),
    )
    n = options.replications
    n_tasks = options.tasks
    if options.real:
        scores = real_scores(options.real)
        for block in (20, 5):
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
            print_markdown(header, savings(scores, n, 31, block))
    print(
        "\nMean error after stopping (100 tasks), times 1,000, with its standard error"
    )
    header = [
        "true difference",
        "difference",
        "unbiased difference",
        "score",
        "unbiased score",
    ]
    print_markdown(header, _bias_rows(n))
    print(
        "\nTasks until settled (median), and comparisons called different / equal in %; standard"
        " deviation 0.15"
    )
    header = [
        "true difference",
        "tasks",
        "1 comparison",
        "10 comparisons",
        "190 comparisons",
    ]
    print_markdown(header, _power_rows(n, (1, 10, 190)))
    print(
        f"\nFalsely called different in %, {n_tasks} tasks, a look after every 5 / 10 / {BLOCK}"
    )
    spreads = (0.02, 0.05, 0.1, 0.15)
    header = [
        "share of tasks",
        "differ by",
        *(f"others {spread}" for spread in spreads),
    ]
    print_markdown(header, _mixture_rows(n, n_tasks, spreads))
    families = {
        1: n * 2,
        10: n,
        190: max(1, n // 4),
    }
    print(
        f"\nFamilies with any false decision in %, {n_tasks} tasks, a look after every {BLOCK}"
    )
    header = ["world"]
    header += [
        f"{n_comparisons} comparisons ({n:,})"
        for n_comparisons, n in families.items()
    ]
    print_markdown(header, _false_rows(families, n_tasks))


if __name__ == "__main__":
    main()
