"""The tree of capabilities: a hierarchical clustering of the vectors of phrases.

Clusters come from k-means (Lloyd's algorithm, scikit-learn), and each is divided again, from the
root down. The same phrases give the same tree: they are sorted first, equal ones are one weighted
point, seeds are fixed, and one thread computes everything, because sums in another order can differ
in their last digit.

One tree is stored for each field; it is rebuilt if its criteria or their phrases have changed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.analyses.phrases import CRITERION, naming_of, stored_phrases
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
"""Dimensions of reduced vectors (see `tfidf`)."""
_DIGITS = 6
"""Digits of a vector's entries; further digits depend on the machine."""


@dataclass(frozen=True)
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

    folded_phrases = [" ".join(phrase.casefold().split()) for phrase in phrases]
    distinct_phrases, first_items, point_index, counts = np.unique(
        folded_phrases,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    with threadpool_limits(limits=1):
        if vectors is None:
            point_vectors = tfidf(distinct_phrases.tolist())
        else:
            point_vectors = _normalised(
                np.array([vectors[item] for item in first_items], dtype=float)
            )
        tree = _grown(point_vectors, counts)
    return replace(tree, leaves=tree.leaves[point_index])


def tfidf(phrases: Sequence[str]) -> Floats:
    """Return vectors of length 1 of phrases: TF-IDF of words and pairs of words.

    They are reduced to 100 dimensions if there are more than 101 phrases, and more than 101 words
    and pairs; else each word and pair is a dimension. A phrase without a counted word has a vector
    of zeros.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, stop_words="english")
    try:
        weighted = vectorizer.fit_transform(phrases)
    except ValueError:  # no phrase has a counted word
        return np.zeros((len(phrases), 1))
    if min(weighted.shape) - 1 <= _DIMENSIONS:
        return _normalised(weighted.toarray())
    reduction = TruncatedSVD(_DIMENSIONS, n_iter=7, random_state=SEED)
    return _normalised(reduction.fit_transform(weighted))


def _normalised(vectors: NDArray[Any]) -> Floats:
    """Return vectors scaled to length 1 and rounded; those of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.divide(vectors, lengths, out=np.zeros(vectors.shape), where=lengths > 0)
    return np.asarray(np.round(scaled, _DIGITS), dtype=float)


def _grown(points: Floats, counts: Ints) -> Tree:
    """Return the tree of distinct points with their numbers of items, parents before children."""
    fewest = max(FEWEST_CRITERIA, math.ceil(int(counts.sum()) / MOST_LEAVES))
    parents = list[int]()
    leaves = np.zeros(len(points), dtype=np.int64)
    pending = [(np.arange(len(points)), -1, LEVELS)] if len(points) else []
    while pending:
        members, parent, levels_left = pending.pop()
        node = len(parents)
        leaves[members] = node
        parents.append(parent)
        groups = _divided(points[members], counts[members], fewest, levels_left)
        for group in reversed(groups):
            pending.append((members[group], node, levels_left - 1))
    return Tree(tuple(parents), leaves)


def _divided(points: Floats, counts: Ints, fewest: int, levels_left: int) -> list[Ints]:
    """Return the children of a node, the largest first.

    There are none if it cannot be divided into large enough ones.
    """
    n_items = int(counts.sum())
    n_possible = min(len(np.unique(points, axis=0)), n_items // fewest)
    if levels_left == 0 or n_possible < 2:
        return []
    # With so many children of each node, leaves have on average four times the smallest size.
    n_wanted = max(2, math.ceil((n_items / (4 * fewest)) ** (1 / levels_left)))
    # Of the five numbers from this one on, the one with the best silhouette is used.
    start = min(n_wanted, n_possible)
    end = min(n_wanted + 5, n_possible + 1)
    best_fit = -math.inf
    groups: list[Ints] = []
    for n_children in range(start, end):
        fit, labels = _split(points, counts, fewest, n_children)
        if fit > best_fit:
            best_fit = fit
            groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    return sorted(groups, key=lambda group: (-int(counts[group].sum()), int(group[0])))


def _split(points: Floats, counts: Ints, fewest: int, n_groups: int) -> tuple[float, Ints]:
    """Return the fit of groups (silhouette), and each point's group.

    Groups that are too small join the nearest large one. The fit is -inf if fewer than two are
    large enough. It is -1, the lowest silhouette, if it is undefined.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    fitted = KMeans(n_groups, n_init=4, random_state=SEED).fit(points, sample_weight=counts)
    sizes = np.bincount(fitted.labels_, counts, minlength=n_groups)
    large_groups = np.flatnonzero(sizes >= fewest)
    if len(large_groups) < 2:
        return -math.inf, fitted.labels_
    centers = fitted.cluster_centers_
    distances = np.linalg.norm(centers[:, None] - centers[large_groups], axis=2)
    nearest_large = large_groups[distances.argmin(axis=1)]
    labels = nearest_large[fitted.labels_]
    # The time and memory of a silhouette grow with the square of the number of points.
    sampled = np.random.default_rng(SEED).permutation(len(points))[:1_000]
    # A silhouette is undefined for a single group, and for groups of one point each.
    if not 1 < len(np.unique(labels[sampled])) < len(sampled):
        return -1.0, labels
    return float(silhouette_score(points[sampled], labels[sampled])), labels


TreeRow = dict[str, Any]
"""A row of a tree, of its nodes or of its criteria."""


class MissingTree(NamedTuple):
    """A tree to build: its row, its criteria, and the vectors of their phrases, if any."""

    row: TreeRow
    members: list[TreeRow]
    vectors: list[list[float]] | None


def trees_to_grow(job: Job, reader: Reader) -> Iterator[MissingTree]:
    """Yield the trees that are missing.

    If an embedding model is configured, phrases that have no vector by it yet are left out.
    """
    key = wanted_tasks(job, reader).key
    stored_ids = {row["field"]: row["tree_id"] for row in reader.select("capability_trees", **key)}
    vectors: dict[str, list[float]] | None = None
    label = "tfidf"
    config_hash = "tfidf"
    # Without an embedding model, a tree uses TF-IDF.
    embedding = next(iter(job.settings.capability_embedding), None)
    if embedding is not None:
        label = embedding.label
        config_hash = target_of(embedding).config_hash
        vectors = _stored_vectors(reader, key, config_hash)
    criteria = stored_phrases(job, reader, key)
    for field, group in groupby(criteria, key=itemgetter("field")):
        members = [row for row in group if vectors is None or row["phrase"] in vectors]
        content = [[*_criterion(row), row["phrase"]] for row in members]
        # The id is a hash of the content, so an unchanged tree is not built twice.
        tree_id = digest("tree", METHOD, config_hash, field, content)[:16]
        if not members or stored_ids.get(field) == tree_id:
            continue
        tree_row = {
            **key,
            "field": field,
            "tree_id": tree_id,
            "vectors": label,
            "method": METHOD,
            **_sizes(members),
        }
        member_vectors = None
        if vectors is not None:
            member_vectors = [vectors[row["phrase"]] for row in members]
        yield MissingTree(tree_row, members, member_vectors)


def _stored_vectors(
    reader: Reader,
    key: Mapping[str, str],
    config_hash: str,
) -> dict[str, list[float]]:
    """Return the vectors of phrases by an embedding model."""
    rows = reader.select(
        "phrase_embeddings",
        "phrase, vector",
        order="phrase",
        model_config_hash=config_hash,
        status=OK,
        **key,
    )
    return {row["phrase"]: row["vector"] for row in rows}


def _criterion(row: TreeRow) -> list[str]:
    return [row[name] for name in CRITERION]


def grow(job: Job) -> StageReport:
    """Build the trees of fields whose phrases have changed."""
    report = StageReport("capabilities")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        missing_trees = list(trees_to_grow(job, reader))
    for row, members, vectors in missing_trees:
        tree = build_tree([member["phrase"] for member in members], vectors)
        _store(warehouse, row, tree, members)
        report.notes.append(f"{row['field']}: a tree of {len(members)} criteria")
    warehouse.publish()
    return report


def _store(warehouse: Warehouse, tree_row: TreeRow, tree: Tree, members: Sequence[TreeRow]) -> None:
    created_at = datetime.now(UTC)
    nodes: list[TreeRow] = []
    node_members: list[TreeRow] = []
    _, leaf_index = np.unique(tree.leaves, return_inverse=True)
    # 1 where a member is under a node, shape (n_members, n_nodes).
    under = leaves_under(tree.parents)[leaf_index]
    for position, parent in enumerate(tree.parents):
        inside = [members[index] for index in np.flatnonzero(under[:, position]).tolist()]
        columns = _node_columns(tree_row, inside)
        columns["is_leaf"] = position not in tree.parents
        for member in inside:
            node_members.append(columns | {name: member[name] for name in CRITERION})
        node = {
            **columns,
            "field": tree_row["field"],
            "parent_id": None,
            "level": 0,
            "position": position,
            "name": None,
            **_sizes(inside),
            "created_at": created_at,
        }
        if parent < 0:
            node["name"] = tree_row["field"]
        else:
            node["parent_id"] = nodes[parent]["node_id"]
            node["level"] = nodes[parent]["level"] + 1
        nodes.append(node)
    warehouse.write("capability_members", node_members)
    # `capability_nodes` shows the latest row of each node.
    warehouse.write("capability_node_rows", nodes)
    # Written last, because it marks which tree is current.
    warehouse.write("capability_trees", [tree_row | {"created_at": created_at}])


def _node_columns(tree_row: TreeRow, members: Sequence[TreeRow]) -> TreeRow:
    """Return the columns that identify a node: of its tree, and a hash of its criteria."""
    content = sorted(map(_criterion, members))
    return {
        "benchmark": tree_row["benchmark"],
        "dataset_revision": tree_row["dataset_revision"],
        "tree_id": tree_row["tree_id"],
        "node_id": digest("node", tree_row["field"], content)[:16],
    }


def _sizes(members: Sequence[TreeRow]) -> TreeRow:
    return {"n_criteria": len(members), "n_tasks": len({row["task_id"] for row in members})}


def nodes_to_name(job: Job, reader: Reader) -> list[TreeRow]:
    """Return new rows for the nodes whose stored name is out of date, with the current name."""
    key = wanted_tasks(job, reader).key
    names, _ = naming_of(job, reader, key)
    created_at = datetime.now(UTC)
    rows = []
    for row in reader.select("capability_nodes", **key):
        name = names.get(row["node_id"], row["name"])
        if name != row["name"]:
            rows.append(row | {"name": name, "created_at": created_at})
    return rows


def write_names(job: Job) -> StageReport:
    """Store the current names of nodes."""
    report = StageReport("capabilities")
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        renamed = nodes_to_name(job, reader)
    if renamed:
        warehouse.write("capability_node_rows", renamed)
        warehouse.publish()
        report.notes.append(f"{len(renamed)} nodes named")
    return report
