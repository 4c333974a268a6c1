"""The tree of capabilities: a hierarchical clustering of the vectors of phrases.

Clusters come from k-means (Lloyd's algorithm, scikit-learn), and each is divided again, from the
root down. The same phrases give the same tree: they are sorted first, equal ones are one weighted
point, seeds are fixed, and one thread computes everything, because sums in another order can differ
in their last digit.

One tree is stored for each field; it is rebuilt if its criteria or their phrases have changed.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.analyses.phrases import naming_of, stored_phrases
from tasks.config.job import Job
from tasks.llm.replies import OK
from tasks.rules.identity import digest
from tasks.rules.statistics.intervals import SEED, Floats, Ints
from tasks.rules.statistics.weaknesses import leaves_under
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

METHOD = "k-means-1"
"""The name of the method, stored with trees; increase the number if the same phrases would give
another tree.
"""
LEVELS = 4
"""Levels below the root: with the root, the five levels of the paper (section 5.2)."""
FEWEST_CRITERIA = 15
"""Smallest number of criteria of a node: with fewer, it has too few tasks to measure it."""
MOST_LEAVES = 200
"""A large tree's smallest nodes are larger, because each tested node reduces the power of all other
tests.
"""
_DIMENSIONS = 100
_CRITERION = ("task_id", "criterion_id", "criterion_hash")
_DIGITS = 6
"""Digits of a vector's entries; further digits depend on the machine."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree of capabilities.

    Attributes:
        parents: the index of each node's parent, -1 for the root; parents come before their
            children.
        leaves: the node that each item belongs to; it has no children.
    """

    parents: tuple[int, ...]
    leaves: Ints


def build_tree(phrases: Sequence[str], vectors: Sequence[Sequence[float]] | None = None) -> Tree:
    """Return the tree of items with these phrases; the order of the items does not matter.

    Args:
        phrases: one for each item.
        vectors: their embeddings, the same for equal phrases; without them TF-IDF of the phrases
            themselves.
    """
    import sklearn.cluster  # noqa: F401 - the bound applies only to loaded libraries
    from threadpoolctl import threadpool_limits

    keys = [" ".join(phrase.casefold().split()) for phrase in phrases]
    distinct, first, which, counts = np.unique(
        keys,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    with threadpool_limits(limits=1):
        if vectors is None:
            points = tfidf(list(map(str, distinct)))
        else:
            points = _unit(np.asarray([vectors[index] for index in first], dtype=np.float64))
        tree = _grown(points, counts.astype(np.int64))
    return replace(tree, leaves=tree.leaves[which.reshape(-1)])


def tfidf(phrases: Sequence[str]) -> Floats:
    """Return vectors of length 1 of phrases: TF-IDF of words and pairs of words, in at most 100
    dimensions.

    A phrase without a counted word has a vector of zeros.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        weighted = TfidfVectorizer(
            ngram_range=(1, 2),
            sublinear_tf=True,
            stop_words="english",
        ).fit_transform(phrases)
    except ValueError:  # no phrase has a counted word
        return np.zeros((len(phrases), 1))
    if min(weighted.shape) - 1 <= _DIMENSIONS:
        return _unit(weighted.toarray())
    return _unit(TruncatedSVD(_DIMENSIONS, n_iter=7, random_state=SEED).fit_transform(weighted))


def _unit(vectors: NDArray[Any]) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)
    return np.asarray(np.round(scaled, _DIGITS), dtype=np.float64)


def _grown(points: Floats, counts: Ints) -> Tree:
    """Return the tree of distinct points with their numbers of items, each node before its
    children.
    """
    fewest = max(FEWEST_CRITERIA, math.ceil(int(counts.sum()) / MOST_LEAVES))
    parents = list[int]()
    leaves = np.zeros(len(points), dtype=np.int64)
    pending = [(np.arange(len(points)), -1, LEVELS)] if len(points) else []
    while pending:
        members, parent, levels_left = pending.pop()
        leaves[members] = node = len(parents)
        parents.append(parent)
        groups = _divided(points[members], counts[members], fewest, levels_left)
        pending += [(members[group], node, levels_left - 1) for group in reversed(groups)]
    return Tree(tuple(parents), leaves)


def _divided(points: Floats, counts: Ints, fewest: int, levels_left: int) -> list[Ints]:
    """Return the children of a node, the largest first; none if it cannot be divided into large
    enough ones.
    """
    n_items = int(counts.sum())
    most = min(len(np.unique(points, axis=0)), n_items // fewest)
    if levels_left == 0 or most < 2:
        return []
    # With this number of children in each level below, leaves would have four times the smallest
    # size.
    least = max(2, math.ceil((n_items / (4 * fewest)) ** (1 / levels_left)))
    # Of five numbers of children, the one with the best silhouette is used.
    tried = [
        _split(points, counts, fewest, k) for k in range(min(least, most), min(least + 5, most + 1))
    ]
    fitness, labels = max(tried, key=lambda each: each[0])
    groups = (
        []
        if fitness == -math.inf
        else [np.flatnonzero(labels == label) for label in np.unique(labels)]
    )
    return sorted(groups, key=lambda group: (-int(counts[group].sum()), int(group[0])))


def _split(points: Floats, counts: Ints, fewest: int, k: int) -> tuple[float, Ints]:
    """Return the fit of k groups (silhouette), and each point's group.

    Groups that are too small join the nearest one.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    fitted = KMeans(k, n_init=4, random_state=SEED).fit(points, sample_weight=counts)
    kept = np.flatnonzero(np.bincount(fitted.labels_, counts, minlength=k) >= fewest)
    if len(kept) < 2:
        return -math.inf, fitted.labels_
    distances = np.linalg.norm(
        fitted.cluster_centers_[:, None] - fitted.cluster_centers_[kept][None], axis=2
    )
    labels = kept[distances.argmin(axis=1)][fitted.labels_]
    sampled = np.random.default_rng(SEED).permutation(len(points))[:1_000]
    if not 1 < len(np.unique(labels[sampled])) < len(sampled):
        return -1.0, labels
    return float(silhouette_score(points[sampled], labels[sampled])), labels


Row = dict[str, Any]


def trees_to_grow(
    job: Job, reader: Reader
) -> Iterator[tuple[Row, list[Row], list[list[float]] | None]]:
    """Yield the trees that are missing: the tree's own row, its criteria, and the vectors of their
    phrases, if any.

    A phrase without a vector is left out.
    """
    key = wanted_tasks(job, reader).key
    stored = {row["field"]: row["tree_id"] for row in reader.select("capability_trees", **key)}
    vectors = None
    label = "tfidf"
    by = "tfidf"
    for embedding in job.settings.capability_embedding:  # one at most
        label = embedding.label
        by = target_of(embedding).config_hash
        of_model = {
            **key,
            "model_config_hash": by,
            "status": OK,
        }
        embedded = reader.select("phrase_embeddings", "phrase, vector", order="phrase", **of_model)
        vectors = {row["phrase"]: row["vector"] for row in embedded}
    for field, rows in groupby(stored_phrases(job, reader, key), key=lambda row: row["field"]):
        members = [row for row in rows if vectors is None or row["phrase"] in vectors]
        content = [[row[name] for name in (*_CRITERION, "phrase")] for row in members]
        # The id is a hash of the content, so an unchanged tree is not built twice.
        tree_id = digest("tree", METHOD, by, field, content)[:16]
        if members and stored.get(field) != tree_id:
            row = {
                **key,
                "field": field,
                "tree_id": tree_id,
                "vectors": label,
                "method": METHOD,
                **_sizes(members),
            }
            yield (
                row,
                members,
                None if vectors is None else [vectors[each["phrase"]] for each in members],
            )


def grow(job: Job) -> StageReport:
    """Build the trees of fields whose phrases have changed."""
    report = StageReport("capabilities")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        missing = list(trees_to_grow(job, reader))
    for row, members, vectors in missing:
        _store(
            warehouse, row, build_tree([member["phrase"] for member in members], vectors), members
        )
        report.notes.append(f"{row['field']}: a tree of {len(members)} criteria")
    warehouse.publish()
    return report


def _store(warehouse: Warehouse, row_of_tree: Row, tree: Tree, members: Sequence[Row]) -> None:
    nodes: list[Row] = []
    of_nodes: list[Row] = []
    created = {"created_at": datetime.now(UTC)}
    field = row_of_tree["field"]
    in_tree = {name: row_of_tree[name] for name in ("benchmark", "dataset_revision", "tree_id")}
    of_leaf = leaves_under(tree.parents)[np.unique(tree.leaves, return_inverse=True)[1]]
    for node, parent in enumerate(tree.parents):
        under = [members[index] for index in np.flatnonzero(of_leaf[:, node]).tolist()]
        content = sorted([row[name] for name in _CRITERION] for row in under)
        own = {
            **in_tree,
            "node_id": digest("node", field, content)[:16],
            "is_leaf": node not in tree.parents,
        }
        above: Row = {"node_id": None, "level": -1} if parent < 0 else nodes[parent]
        nodes.append(
            {
                **own,
                "field": field,
                "parent_id": above["node_id"],
                "level": above["level"] + 1,
                "position": node,
                "name": field if parent < 0 else None,
                **_sizes(under),
                **created,
            }
        )
        of_nodes += [own | {name: row[name] for name in _CRITERION} for row in under]
    warehouse.write("capability_members", of_nodes)
    warehouse.write("capability_node_rows", nodes)
    # Written last, because it marks which tree is current.
    warehouse.write("capability_trees", [{**row_of_tree, **created}])


def _sizes(members: Sequence[Row]) -> Row:
    return {"n_criteria": len(members), "n_tasks": len({row["task_id"] for row in members})}


def nodes_to_name(job: Job, reader: Reader) -> list[Row]:
    """Return new rows for the nodes whose stored name is out of date, with the current name."""
    key = wanted_tasks(job, reader).key
    names, _ = naming_of(job, reader, key)
    now = datetime.now(UTC)
    return [
        {
            **row,
            "name": names[row["node_id"]],
            "created_at": now,
        }
        for row in reader.select("capability_nodes", **key)
        if names.get(row["node_id"], row["name"]) != row["name"]
    ]


def write_names(job: Job) -> StageReport:
    """Store the current names of nodes."""
    report = StageReport("capabilities")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        changed = nodes_to_name(job, reader)
    if changed:
        warehouse.write("capability_node_rows", changed)
        warehouse.publish()
        report.notes.append(f"{len(changed)} nodes named")
    return report
