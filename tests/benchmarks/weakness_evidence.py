"""Detection of planted weaknesses, and false confirmations without a planted one.

All phrases and verdicts are made up. A task has criteria of several topics, each topic belongs to
an area, and a phrase has words of its topic, of its area, and of neither.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tasks.analyses.trees import Tree, build_tree
from tasks.rules.statistics import weaknesses as rules
from tests.benchmarks.figures import arguments, markdown

TOPICS = 24
AREAS = 6
CATEGORIES = 6
Floats = np.ndarray


@dataclass(frozen=True)
class Rubrics:
    """Made-up criteria: the task, topic and category of each, and its weight."""

    seed: int
    tasks: np.ndarray
    topics: np.ndarray
    categories: np.ndarray
    weights: Floats

    def phrases(self) -> list[str]:
        """A phrase for each criterion."""
        dice = np.random.default_rng([7, self.seed])
        return [phrase(dice, int(topic)) for topic in self.topics]

    @property
    def n_tasks(self) -> int:
        return int(self.tasks.max()) + 1


def rubrics(
    seed: int, n_tasks: int = 200, *, evenness: float = 3.0, loyalty: float = 0.3
) -> Rubrics:
    """Made-up rubrics of 10 to 20 criteria a task.

    About half of a task's criteria are of one area, the others of any. The smaller `evenness`, the
    more unequal the topics' sizes. A criterion has the category of its topic with probability
    `loyalty`, else any category.
    """
    dice = np.random.default_rng([1, seed])
    shares = dice.dirichlet(np.full(TOPICS, evenness))
    tasks = np.repeat(np.arange(n_tasks), dice.integers(10, 21, size=n_tasks))
    homes = dice.integers(AREAS, size=n_tasks)[tasks]
    topics = dice.choice(TOPICS, size=len(tasks), p=shares)
    for area in range(AREAS):
        here = (homes == area) & (dice.random(len(tasks)) < 0.5)
        own = np.flatnonzero(np.arange(TOPICS) % AREAS == area)
        topics[here] = dice.choice(own, size=int(here.sum()), p=shares[own] / shares[own].sum())
    is_loyal = dice.random(len(tasks)) < loyalty
    categories = np.where(
        is_loyal, topics // (TOPICS // CATEGORIES), dice.integers(CATEGORIES, size=len(tasks))
    )
    weights = dice.integers(1, 11, size=len(tasks)) * np.where(
        dice.random(len(tasks)) < 0.08, -1.0, 1.0
    )
    return Rubrics(seed, tasks, topics, categories, weights)


def phrase(dice: np.random.Generator, topic: int) -> str:
    """Three words of the topic, two of its area, three of neither."""
    words = [f"topic{topic}word{dice.integers(6)}" for _ in range(3)]
    words += [f"area{topic % AREAS}word{dice.integers(6)}" for _ in range(2)]
    return " ".join([*words, *(f"word{dice.integers(40)}" for _ in range(3))])


def verdicts(
    seed: int, world: Rubrics, lowered: np.ndarray, by: float, n_models: int = 3
) -> Floats:
    """Verdicts (n_models, n_criteria), NaN for 2 % undecided.

    The first model handles `lowered` criteria worse, by `by` in log odds. Tasks and criteria are
    unequally hard, for all models, and a task suits some models better.
    """
    dice = np.random.default_rng([2, seed])
    n = len(world.tasks)
    hardness = dice.normal(0.0, 0.7, size=world.n_tasks)[world.tasks] + dice.normal(
        0.0, 0.7, size=n
    )
    suits = dice.normal(0.0, 0.5, size=(n_models, world.n_tasks))[:, world.tasks]
    odds = 0.3 + hardness + suits
    odds[0] -= by * lowered
    is_right = dice.random((n_models, n)) < 1 / (1 + np.exp(-odds))
    values = np.where(world.weights < 0, ~is_right, is_right).astype(np.float64)
    values[dice.random(values.shape) < 0.02] = np.nan
    return values


def flat(labels: np.ndarray) -> Tree:
    """A tree of one level: a root with a node for each label."""
    distinct, which = np.unique(labels, return_inverse=True)
    return Tree((-1, *(0 for _ in distinct)), which.astype(np.int64) + 1)


def shuffled(tree: Tree, seed: int) -> Tree:
    """A tree of the same shape with the items in other places."""
    return Tree(tree.parents, np.random.default_rng([3, seed]).permutation(tree.leaves))


def sums_of(
    tree: Tree, tasks: np.ndarray, weights: Floats, right: Floats, n_tasks: int
) -> rules.TaskSums:
    """The sums of a model's criteria by task and leaf."""
    leaves = [node for node in range(len(tree.parents)) if node not in set(tree.parents)]
    columns = np.searchsorted(leaves, tree.leaves)
    return rules.task_sums(right, weights, tasks, columns, (n_tasks, len(leaves)))


def contrasts(
    tree: Tree, tasks: np.ndarray, weights: Floats, right: Floats
) -> list[rules.Contrast]:
    """The first model compared with its other criteria, and with each other model on the criteria
    decided for both.
    """
    n_tasks = int(tasks.max()) + 1
    world = [rules.Contrast(sums_of(tree, tasks, weights, right[0], n_tasks))]
    for other in right[1:]:
        both = [np.where(np.isnan(right[0] + other), np.nan, each) for each in (right[0], other)]
        world.append(
            rules.Contrast(*(sums_of(tree, tasks, weights, each, n_tasks) for each in both))
        )
    return world


def weaknesses(
    tree: Tree, compared: list[rules.Contrast], alpha: float = rules.ALPHA
) -> list[list[rules.TestedNode]]:
    """All candidates of the first model, confirmed or not, by contrast."""
    n_tasks = len(compared[0].model.right)
    finding = for_finding(n_tasks)
    candidates = [
        rules.candidates(each.of_tasks(finding), tree.parents, alpha) for each in compared
    ]
    rest = [
        (each.of_tasks(~finding), tree.parents, some)
        for each, some in zip(compared, candidates, strict=True)
    ]
    return rules.confirmed(rest)


def for_finding(n_tasks: int) -> np.ndarray:
    """Return a mask of the tasks that weaknesses are found on."""
    return np.array([rules.is_for_selection(f"task {index}") for index in range(n_tasks)])


def marked(tree: Tree, candidates: list[list[rules.TestedNode]]) -> np.ndarray:
    """Return a mask of the criteria under a confirmed node."""
    is_marked = np.zeros(len(tree.leaves), dtype=bool)
    for each in (each for some in candidates for each in some if each.is_weak):
        is_marked[tree.members(each.node)] = True
    return is_marked


def f1(truth: np.ndarray, marks: np.ndarray) -> float:
    """F1 of the marked criteria; 0 if none of them is right."""
    return float(2 * (truth & marks).sum() / (truth.sum() + marks.sum()))


@dataclass(frozen=True)
class Planting:
    """Planted weaknesses, in a number of topics or in a whole area, and the kind of rubrics."""

    n_tasks: int = 200
    n_topics: int = 1
    is_area: bool = False
    by: float = 2.0
    evenness: float = 3.0
    loyalty: float = 0.3

    def world(self, seed: int) -> tuple[Rubrics, np.ndarray]:
        """The rubrics, and a mask of the criteria that are lowered."""
        world = rubrics(seed, self.n_tasks, evenness=self.evenness, loyalty=self.loyalty)
        dice = np.random.default_rng([4, seed])
        if self.is_area:
            return world, world.topics % AREAS == dice.integers(AREAS)
        # A topic with few criteria could not be found.
        there = [topic for topic in range(TOPICS) if (world.topics == topic).sum() >= 40]
        return world, np.isin(world.topics, dice.choice(there, size=self.n_topics, replace=False))


PLANTINGS = {
    "one topic": Planting(),
    "two topics": Planting(n_topics=2),
    "an area of four topics": Planting(is_area=True),
    "one topic, weaker": Planting(by=1.2),
    "one topic, 100 tasks": Planting(n_tasks=100),
    "one topic, 500 tasks": Planting(n_tasks=500),
    "one topic, unequal sizes": Planting(evenness=0.7),
    "one topic, category follows topic": Planting(loyalty=0.8),
}
TREES = ("tree", "category", "random tree", "true topics")
FALSE = "false, %"


def planted_scores(planting: Planting, seed: int) -> dict[str, float]:
    """F1 of the confirmed nodes, by tree; under `FALSE`, 100 if a node without lowered criteria was
    confirmed.

    `FALSE` is for the tree of the true topics.
    """
    world, lowered = planting.world(seed)
    right = rules.handled_rightly(verdicts(seed, world, lowered, planting.by), world.weights)
    grown = build_tree(world.phrases())
    several = (grown, flat(world.categories), shuffled(grown, seed), by_topic(world.topics))
    trees = dict(zip(TREES, several, strict=True))
    compared = {
        name: contrasts(tree, world.tasks, world.weights, right) for name, tree in trees.items()
    }
    by_tree = {name: weaknesses(tree, compared[name]) for name, tree in trees.items()}
    true = trees[TREES[-1]]
    confirmed = (each.node for some in by_tree[TREES[-1]] for each in some if each.is_weak)
    is_false = any(not lowered[true.members(node)].any() for node in confirmed)
    return {name: f1(lowered, marked(tree, by_tree[name])) for name, tree in trees.items()} | {
        FALSE: 100.0 * is_false
    }


@dataclass(frozen=True)
class Null:
    """A world in which no model has a weakness: handling a criterion rightly does not depend on its
    topic.
    """

    right: Callable[[np.random.Generator, Rubrics, int], Floats]
    n_tasks: int = 200
    evenness: float = 3.0

    def contrasts(self, seed: int, n_models: int = 3) -> tuple[Tree, list[rules.Contrast]]:
        """A tree of areas and topics, and the first model's contrasts in it."""
        world = rubrics(seed, self.n_tasks, evenness=self.evenness)
        right = self.right(np.random.default_rng([5, seed]), world, n_models)
        return by_topic(world.topics), contrasts(
            by_topic(world.topics), world.tasks, world.weights, right
        )


def by_topic(topics: np.ndarray) -> Tree:
    """The tree of areas, their topics, and two halves of each topic: every second criterion."""
    parents = [-1, *(0 for _ in range(AREAS)), *(1 + topic % AREAS for topic in range(TOPICS))]
    parents += [1 + AREAS + half // 2 for half in range(2 * TOPICS)]
    leaves = 1 + AREAS + TOPICS + 2 * topics + np.arange(len(topics)) % 2
    return Tree(tuple(parents), leaves)


def chances(
    dice: np.random.Generator, world: Rubrics, n_models: int, first: float, second: float
) -> Floats:
    """Verdicts with a chance by task, from a beta distribution, the same for all models."""
    chance = dice.beta(first, second, size=world.n_tasks)[world.tasks]
    return (dice.random((n_models, len(world.tasks))) < chance).astype(np.float64)


def alike_by_topic(dice: np.random.Generator, world: Rubrics, n_models: int) -> Floats:
    """Three quarters of a topic's criteria in a task are handled alike."""
    several = dice.random((n_models, world.n_tasks, TOPICS)) < 0.5
    same = several[:, world.tasks, world.topics]
    single = dice.random((n_models, len(world.tasks))) < 0.5
    return np.where(dice.random(single.shape) < 0.75, same, single).astype(np.float64)


def heavy(dice: np.random.Generator, world: Rubrics, n_models: int) -> Floats:
    """Values with noise of Student's t with 3 degrees, by task and topic as well as by
    criterion.
    """
    of_topic = dice.standard_t(3, size=(n_models, world.n_tasks, TOPICS))[
        :, world.tasks, world.topics
    ]
    return np.asarray(
        0.5 + 0.1 * of_topic + 0.1 * dice.standard_t(3, size=(n_models, len(world.tasks)))
    )


def sparse(dice: np.random.Generator, world: Rubrics, n_models: int) -> Floats:
    """Nearly the same responses: two models differ in one criterion of thirty."""
    base = dice.random(len(world.tasks)) < 0.6
    is_other = dice.random((n_models, len(world.tasks))) < 1 / 60
    return (base ^ is_other).astype(np.float64)


def undecided(dice: np.random.Generator, world: Rubrics, n_models: int) -> Floats:
    """A third of the verdicts are missing, more in some topics."""
    values = chances(dice, world, n_models, 2, 2)
    values[dice.random(values.shape) < 0.05 + 0.55 * (world.topics % 2)] = np.nan
    return values


NULLS = {
    "even chances": Null(lambda dice, world, n: chances(dice, world, n, 50, 50)),
    "unequal tasks": Null(lambda dice, world, n: chances(dice, world, n, 1, 1)),
    "hard tasks (1 of 10 right)": Null(lambda dice, world, n: chances(dice, world, n, 0.3, 2.7)),
    "very hard tasks (1 of 25 right)": Null(
        lambda dice, world, n: chances(dice, world, n, 1.0, 24.0)
    ),
    "easy tasks (9 of 10 right)": Null(lambda dice, world, n: chances(dice, world, n, 2.7, 0.3)),
    "20 tasks": Null(lambda dice, world, n: chances(dice, world, n, 1, 1), n_tasks=20),
    "40 hard tasks": Null(lambda dice, world, n: chances(dice, world, n, 0.3, 2.7), n_tasks=40),
    "unequal topics": Null(lambda dice, world, n: chances(dice, world, n, 1, 1), evenness=0.3),
    "a topic's verdicts alike in a task": Null(alike_by_topic),
    "noise of t with 3 degrees": Null(heavy),
    "nearly the same responses": Null(sparse),
    "a third undecided": Null(undecided),
}


def null_shares(world: Null, seeds: range) -> tuple[float, ...]:
    """Return the % of seeds with a candidate, a confirmed one, and one in the confirming half: of
    few nodes, of all.

    For the last two, a few nodes or all nodes are candidates: the confirming half must be valid
    however candidates were found.
    """
    counts = np.zeros(4)
    for seed in seeds:
        tree, compared = world.contrasts(seed)
        weak = [each for some in weaknesses(tree, compared) for each in some]
        counts += [bool(weak), any(each.is_weak for each in weak), *one_half(tree, compared, seed)]
    return tuple(100 * counts / len(seeds))


def one_half(tree: Tree, compared: list[rules.Contrast], seed: int) -> Iterator[bool]:
    """Yield whether the confirming half shows a weakness: among three topics and the rest, then in
    the whole tree.
    """
    alpha = rules.ALPHA / len(compared)  # Bonferroni's correction for the contrasts
    halves = [each.of_tasks(~for_finding(len(each.model.right))) for each in compared]
    topics = np.random.default_rng([6, seed]).choice(TOPICS, 3, replace=False)
    which = np.concatenate(
        [np.tile(np.flatnonzero(topics == topic).tolist() or [3], 2) for topic in range(TOPICS)]
    )
    few = [joined(each, which) for each in halves]
    yield any(rules.candidates(each, (-1, 0, 0, 0, 0), alpha) for each in few)
    yield any(rules.candidates(each, tree.parents, alpha) for each in halves)


def joined(contrast: rules.Contrast, which: np.ndarray) -> rules.Contrast:
    """A contrast whose leaves are merged into fewer ones."""
    into = (which[:, None] == np.arange(which.max() + 1)).astype(np.float64)
    sides = (
        each
        and rules.TaskSums(each.right @ into, each.decided @ into, each.squares @ into, each.spread)
        for each in (contrast.model, contrast.rival)
    )
    return rules.Contrast(*sides)


def planted_rows(n_seeds: int) -> Iterator[Sequence[object]]:
    """The lines on planted weaknesses."""
    for name, planting in PLANTINGS.items():
        scored = [planted_scores(planting, seed) for seed in range(n_seeds)]
        *means, false = (
            float(np.mean([each[column] for each in scored])) for column in (*TREES, FALSE)
        )
        yield name, *(f"{mean:.2f}" for mean in means), f"{false:.0f}"


def main() -> None:
    given = arguments(
        __doc__, planted=(50, "seeds for weaknesses"), nothing=(1_000, "seeds with nothing planted")
    )
    heads = (f"planted, {given.planted} seeds", *(f"F1, {name}" for name in TREES), FALSE)
    markdown(heads, planted_rows(given.planted))
    print()
    heads = ("found, %", "confirmed, %", "by one half, 12 nodes, %", "by one half, all nodes, %")
    shares = ((name, null_shares(world, range(given.nothing))) for name, world in NULLS.items())
    null_rows = ((name, *(f"{share:.1f}" for share in of_world)) for name, of_world in shares)
    markdown((f"nothing planted, {given.nothing} seeds", *heads), null_rows)


if __name__ == "__main__":
    main()
