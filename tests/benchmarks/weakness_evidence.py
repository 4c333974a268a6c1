"""Detection of planted weaknesses, and false confirmations without a planted one.

All phrases and verdicts are made up. A task has criteria of several topics, each topic belongs to
an area, and a phrase has words of its topic, of its area, and of neither.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.analyses.trees import Tree, build_tree
from tasks.rules.statistics import weaknesses
from tasks.rules.statistics.weaknesses import Contrast, TaskSums, TestedNode
from tests.benchmarks.figures import parse_arguments, print_markdown

Floats = np.ndarray
Dice = np.random.Generator
TOPICS = 24
AREAS = 6
CATEGORIES = 6
N_MODELS = 3


@dataclass(frozen=True)
class Rubrics:
    """Made-up criteria: the task, topic and category of each, and its weight."""

    seed: int
    tasks: np.ndarray
    topics: np.ndarray
    categories: np.ndarray
    weights: Floats

    @property
    def n_tasks(self) -> int:
        return int(self.tasks.max()) + 1

    def phrases(self) -> list[str]:
        """Return a phrase for each criterion."""
        dice = np.random.default_rng([7, self.seed])
        return [phrase(dice, int(topic)) for topic in self.topics]


def rubrics(
    seed: int, n_tasks: int, evenness: float, loyalty: float = 0.3
) -> Rubrics:
    """Return rubrics of 10 to 20 criteria a task.

    About half of a task's criteria are of one area, the others of any.

    Args:
        evenness: the smaller, the more unequal are the topics' sizes.
        loyalty: the probability that a criterion has the category of its topic; else it has any.
    """
    dice = np.random.default_rng([1, seed])
    shares = dice.dirichlet(np.full(TOPICS, evenness))
    tasks = np.repeat(np.arange(n_tasks), dice.integers(10, 21, size=n_tasks))
    n = len(tasks)
    task_areas = dice.integers(AREAS, size=n_tasks)[tasks]
    topics = dice.choice(TOPICS, size=n, p=shares)
    for area in range(AREAS):
        is_of_area = (task_areas == area) & (dice.random(n) < 0.5)
        area_topics = np.flatnonzero(np.arange(TOPICS) % AREAS == area)
        area_shares = shares[area_topics] / shares[area_topics].sum()
        topics[is_of_area] = dice.choice(
            area_topics,
            size=int(is_of_area.sum()),
            p=area_shares,
        )
    is_loyal = dice.random(n) < loyalty
    any_category = dice.integers(CATEGORIES, size=n)
    categories = np.where(is_loyal, topics // (TOPICS // CATEGORIES), any_category)
    sizes = dice.integers(1, 11, size=n)
    signs = np.where(dice.random(n) < 0.08, -1.0, 1.0)
    return Rubrics(seed, tasks, topics, categories, sizes * signs)


def phrase(dice: Dice, topic: int) -> str:
    """Return three words of the topic, two of its area, three of neither."""
    words = [f"topic{topic}word{dice.integers(6)}" for _ in range(3)]
    words += [f"area{topic % AREAS}word{dice.integers(6)}" for _ in range(2)]
    words += [f"word{dice.integers(40)}" for _ in range(3)]
    return " ".join(words)


def verdicts(
    seed: int,
    world: Rubrics,
    is_lowered: np.ndarray,
    log_odds: float,
) -> Floats:
    """Return verdicts (N_MODELS, n_criteria), NaN for 2 % undecided.

    The first model handles lowered criteria worse, by `log_odds`. Tasks and criteria are unequally
    hard, for all models, and a task suits some models better.
    """
    dice = np.random.default_rng([2, seed])
    n = len(world.tasks)
    task_hardness = dice.normal(0.0, 0.7, size=world.n_tasks)[world.tasks]
    hardness = task_hardness + dice.normal(0.0, 0.7, size=n)
    suitability = dice.normal(0.0, 0.5, size=(N_MODELS, world.n_tasks))[
        :, world.tasks
    ]
    odds = 0.3 + hardness + suitability
    odds[0] -= log_odds * is_lowered
    is_right = dice.random((N_MODELS, n)) < 1 / (1 + np.exp(-odds))
    values = np.where(world.weights < 0, ~is_right, is_right).astype(np.float64)
    values[dice.random(values.shape) < 0.02] = np.nan
    return values


def tree_of_labels(labels: np.ndarray) -> Tree:
    """Return a tree of one level: a root with a node for each label."""
    distinct, label_index = np.unique(labels, return_inverse=True)
    parents = [-1] + [0] * len(distinct)
    return Tree(tuple(parents), label_index.astype(np.int64) + 1)


def tree_of_topics(topics: np.ndarray) -> Tree:
    """Return the tree of areas, their topics, and two halves of each topic: every second
    criterion.
    """
    parents = [-1] + [0] * AREAS
    parents += [1 + topic % AREAS for topic in range(TOPICS)]
    parents += [1 + AREAS + half // 2 for half in range(2 * TOPICS)]
    leaves = 1 + AREAS + TOPICS + 2 * topics + np.arange(len(topics)) % 2
    return Tree(tuple(parents), leaves)


def shuffled(tree: Tree, seed: int) -> Tree:
    """Return a tree of the same shape with the items under other nodes."""
    return Tree(
        tree.parents, np.random.default_rng([3, seed]).permutation(tree.leaves)
    )


def leaf_indices(tree: Tree) -> np.ndarray:
    """Return, for each item, the position of its leaf among the leaves."""
    leaves = np.setdiff1d(np.arange(len(tree.parents)), tree.parents)
    return np.searchsorted(leaves, tree.leaves)


def is_under(tree: Tree, node: int) -> np.ndarray:
    """Return a mask of the items under a node."""
    return weaknesses.leaves_under(tree.parents)[leaf_indices(tree), node] == 1


def contrasts(tree: Tree, world: Rubrics, right: Floats) -> list[Contrast]:
    """Return the first model compared with its other criteria, and with each other model on the
    criteria decided for both.
    """
    leaves = leaf_indices(tree)
    shape = (world.n_tasks, int(leaves.max()) + 1)

    def sums(rightness):
        return weaknesses.task_sums(
            rightness,
            world.weights,
            world.tasks,
            leaves,
            shape,
        )

    first = right[0]
    compared = [Contrast(sums(first))]
    for rival in right[1:]:
        is_undecided = np.isnan(first + rival)
        first_sums = sums(np.where(is_undecided, np.nan, first))
        rival_sums = sums(np.where(is_undecided, np.nan, rival))
        compared.append(Contrast(first_sums, rival_sums))
    return compared


def tested_nodes(tree: Tree, compared: Sequence[Contrast]) -> list[TestedNode]:
    """Return all candidates of the first model, confirmed or not."""
    is_selecting = is_for_selection(len(compared[0].model.right))
    searched = []
    for contrast in compared:
        candidates = weaknesses.candidates(
            contrast.of_tasks(is_selecting), tree.parents
        )
        searched.append((contrast.of_tasks(~is_selecting), tree.parents, candidates))
    return [node for nodes in weaknesses.confirmed(searched) for node in nodes]


def is_for_selection(n_tasks: int) -> np.ndarray:
    """Return a mask of the tasks that weaknesses are selected on."""
    return np.array(
        [weaknesses.is_for_selection(f"task {index}") for index in range(n_tasks)]
    )


def f1(truth: np.ndarray, marks: np.ndarray) -> float:
    """Return F1 of the marked criteria; 0 if none of them is right."""
    return float(2 * (truth & marks).sum() / (truth.sum() + marks.sum()))


@dataclass(frozen=True)
class Planting:
    """Planted weaknesses, in a number of topics or in a whole area, and the kind of rubrics."""

    n_tasks: int = 200
    n_topics: int = 1
    is_area: bool = False
    log_odds: float = 2.0
    evenness: float = 3.0
    loyalty: float = 0.3

    def lowered(self, world: Rubrics) -> np.ndarray:
        """Return a mask of the criteria that the first model handles worse."""
        dice = np.random.default_rng([4, world.seed])
        if self.is_area:
            return world.topics % AREAS == dice.integers(AREAS)
        # A topic with few criteria could not be found.
        sizes = np.bincount(world.topics, minlength=TOPICS)
        large_topics = np.flatnonzero(sizes >= 40)
        return np.isin(
            world.topics, dice.choice(large_topics, size=self.n_topics, replace=False)
        )


PLANTINGS = {
    "one topic": Planting(),
    "two topics": Planting(n_topics=2),
    "an area of four topics": Planting(is_area=True),
    "one topic, weaker": Planting(log_odds=1.2),
    "one topic, 100 tasks": Planting(n_tasks=100),
    "one topic, 500 tasks": Planting(n_tasks=500),
    "one topic, unequal sizes": Planting(evenness=0.7),
    "one topic, category follows topic": Planting(loyalty=0.8),
}
TREES = ("tree", "category", "random tree", "true topics")


def planted_scores(planting: Planting, seed: int) -> list[float]:
    """Return F1 of the confirmed nodes of each of the `TREES`, and 100 if a node without lowered
    criteria was confirmed in the tree of the true topics.
    """
    world = rubrics(seed, planting.n_tasks, planting.evenness, planting.loyalty)
    is_lowered = planting.lowered(world)
    decisions = verdicts(seed, world, is_lowered, planting.log_odds)
    right = weaknesses.handled_rightly(decisions, world.weights)
    tree = build_tree(world.phrases())
    trees = [
        tree,
        tree_of_labels(world.categories),
        shuffled(tree, seed),
        tree_of_topics(world.topics),
    ]
    scores = []
    for tree in trees:
        is_marked = np.zeros(len(world.tasks), dtype=bool)
        is_false = False
        for node in tested_nodes(tree, contrasts(tree, world, right)):
            if node.is_weak:
                is_member = is_under(tree, node.node)
                is_marked |= is_member
                is_false |= not is_lowered[is_member].any()
        scores.append(f1(is_lowered, is_marked))
    return [*scores, 100.0 * is_false]


@dataclass(frozen=True)
class Null:
    """A world in which no model has a weakness: handling a criterion rightly does not depend on its
    topic.
    """

    rightness: Callable[[Dice, Rubrics], Floats]
    n_tasks: int = 200
    evenness: float = 3.0

    def contrasts(self, seed: int) -> tuple[Tree, list[Contrast]]:
        """Return a tree of areas and topics, and the first model's contrasts in it."""
        world = rubrics(seed, self.n_tasks, self.evenness)
        right = self.rightness(np.random.default_rng([5, seed]), world)
        tree = tree_of_topics(world.topics)
        return tree, contrasts(tree, world, right)


def chances(first: float, second: float) -> Callable[[Dice, Rubrics], Floats]:
    """Return a draw of verdicts whose chance, by task, is from a beta distribution, the same for
    all models.
    """

    def draw(dice, world):
        chance = dice.beta(first, second, size=world.n_tasks)[world.tasks]
        return (dice.random((N_MODELS, len(world.tasks))) < chance).astype(np.float64)

    return draw


def alike_by_topic(dice: Dice, world: Rubrics) -> Floats:
    """Return verdicts of which three quarters of a topic's criteria in a task are alike."""
    topic_luck = dice.random((N_MODELS, world.n_tasks, TOPICS)) < 0.5
    shared_luck = topic_luck[:, world.tasks, world.topics]
    single_luck = dice.random(shared_luck.shape) < 0.5
    is_shared = dice.random(shared_luck.shape) < 0.75
    return np.where(is_shared, shared_luck, single_luck).astype(np.float64)


def heavy_tails(dice: Dice, world: Rubrics) -> Floats:
    """Return values with noise of Student's t with 3 degrees, by task and topic as well as by
    criterion.
    """
    topic_noise = dice.standard_t(3, size=(N_MODELS, world.n_tasks, TOPICS))
    shared_noise = topic_noise[:, world.tasks, world.topics]
    return (
        0.5 + 0.1 * shared_noise + 0.1 * dice.standard_t(3, size=shared_noise.shape)
    )


def nearly_equal(dice: Dice, world: Rubrics) -> Floats:
    """Return nearly the same responses: two models differ in one criterion of thirty."""
    base = dice.random(len(world.tasks)) < 0.6
    is_flipped = dice.random((N_MODELS, len(world.tasks))) < 1 / 60
    return (base ^ is_flipped).astype(np.float64)


def undecided(dice: Dice, world: Rubrics) -> Floats:
    """Return verdicts of which a third is missing, more in some topics."""
    values = chances(2, 2)(dice, world)
    values[dice.random(values.shape) < 0.05 + 0.55 * (world.topics % 2)] = np.nan
    return values


NULLS = {
    "even chances": Null(chances(50, 50)),
    "unequal tasks": Null(chances(1, 1)),
    "hard tasks (1 of 10 right)": Null(chances(0.3, 2.7)),
    "very hard tasks (1 of 25 right)": Null(chances(1.0, 24.0)),
    "easy tasks (9 of 10 right)": Null(chances(2.7, 0.3)),
    "20 tasks": Null(chances(1, 1), n_tasks=20),
    "40 hard tasks": Null(chances(0.3, 2.7), n_tasks=40),
    "unequal topics": Null(chances(1, 1), evenness=0.3),
    "a topic's verdicts alike in a task": Null(alike_by_topic),
    "noise of t with 3 degrees": Null(heavy_tails),
    "nearly the same responses": Null(nearly_equal),
    "a third undecided": Null(undecided),
}


def null_shares(world: Null, n_seeds: int) -> Floats:
    """Return the % of seeds with a candidate, with a confirmed one, and with one in the confirming
    half: of few nodes, of all nodes.

    For the last two, a few nodes or all nodes are candidates: the confirming half must be valid
    however candidates were found.
    """
    counts = np.zeros(4)
    for seed in range(n_seeds):
        tree, compared = world.contrasts(seed)
        nodes = tested_nodes(tree, compared)
        is_selecting = is_for_selection(len(compared[0].model.right))
        confirming = [contrast.of_tasks(~is_selecting) for contrast in compared]
        few = with_three_topics(confirming, seed)
        counts += [
            bool(nodes),
            any(node.is_weak for node in nodes),
            has_candidates(few, (-1, 0, 0, 0, 0)),
            has_candidates(confirming, tree.parents),
        ]
    return 100 * counts / n_seeds


def has_candidates(compared: Sequence[Contrast], parents: Sequence[int]) -> bool:
    """Return whether any node is a candidate in any contrast, by Bonferroni's correction."""
    alpha = weaknesses.ALPHA / len(compared)
    return any(
        weaknesses.candidates(contrast, parents, alpha) for contrast in compared
    )


def with_three_topics(compared: Sequence[Contrast], seed: int) -> list[Contrast]:
    """Return contrasts whose leaves are merged into three topics and all other criteria."""
    topics = np.random.default_rng([6, seed]).choice(TOPICS, 3, replace=False)
    merged = np.full(TOPICS, 3)
    merged[topics] = np.arange(3)
    # Each topic has two leaves.
    membership = (np.repeat(merged, 2)[:, None] == np.arange(4)).astype(np.float64)

    def joined(sums):
        return TaskSums(
            right=sums.right @ membership,
            decided=sums.decided @ membership,
            squares=sums.squares @ membership,
            spread=sums.spread,
        )

    few = []
    for contrast in compared:
        rival = contrast.rival and joined(contrast.rival)
        few.append(Contrast(joined(contrast.model), rival))
    return few


def planted_rows(n_seeds: int) -> Iterator[Sequence[object]]:
    """Yield the lines on planted weaknesses."""
    for name, planting in PLANTINGS.items():
        scores = [planted_scores(planting, seed) for seed in range(n_seeds)]
        *f1_means, false_percent = np.mean(scores, axis=0)
        yield name, *(f"{mean:.2f}" for mean in f1_means), f"{false_percent:.0f}"


def null_rows(n_seeds: int) -> Iterator[Sequence[object]]:
    """Yield the lines without planted weaknesses."""
    for name, world in NULLS.items():
        yield name, *(f"{share:.1f}" for share in null_shares(world, n_seeds))


def main():
    """Print both tables."""
    options = parse_arguments(
        __doc__,
        planted=(50, "seeds for weaknesses"),
        nothing=(1_000, "seeds with nothing planted"),
    )
    f1_columns = [f"F1, {name}" for name in TREES]
    header = [f"planted, {options.planted} seeds", *f1_columns, "false, %"]
    print_markdown(header, planted_rows(options.planted))
    print()
    header = [
        f"nothing planted, {options.nothing} seeds",
        "found, %",
        "confirmed, %",
        "by one half, 12 nodes, %",
        "by one half, all nodes, %",
    ]
    print_markdown(header, null_rows(options.nothing))


if __name__ == "__main__":
    main()
