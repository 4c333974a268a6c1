"""The trees that are stored: one a field, made where its criteria or their phrases have changed, with names."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import sql
from tasks.capabilities.names import naming_of
from tasks.capabilities.phrases import stored_phrases
from tasks.capabilities.tree import METHOD, Tree, build_tree
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.rules.errors import PipelineError
from tasks.rules.identity import digest
from tasks.run.judgings import target_of
from tasks.run.missing_work import wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

TFIDF = "tfidf"
Row = dict[str, Any]


def grow(job: Job) -> StageReport:
    """Make the trees of fields whose phrases have changed. A phrase without a vector is left out, and counted."""
    report, warehouse = StageReport("capabilities"), Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        key = wanted_tasks(job, reader).key
        rows = stored_phrases(job, reader, key)
        stored = {row["field"]: row["tree_id"] for row in reader.rows(sql.read("questions/capabilities/trees"), key)}
        embedding = next(iter(job.settings.capability_embedding), None)
        vectors = None if embedding is None else _vectors(reader, key, embedding)
    for field, found in groupby(rows, key=lambda row: row["field"]):
        members = [row for row in found if vectors is None or row["phrase"] in vectors]
        tree_id = _tree_id(field, members, embedding)
        if members and stored.get(field) != tree_id:
            _store(warehouse, {**key, "field": field, "tree_id": tree_id}, members, vectors, embedding)
            report.notes.append(f"{field}: a tree of {len(members)} criteria")
    warehouse.publish()
    return report


def _vectors(reader: Reader, key: Mapping[str, str], embedding: Analyst) -> dict[str, list[float]]:
    given = {**key, "model_config_hash": target_of(embedding).config_hash}
    rows = reader.rows(sql.read("questions/capabilities/embeddings"), given)
    lengths = sorted({len(row["vector"]) for row in rows})
    if len(lengths) > 1:
        raise PipelineError(
            f"{embedding.label}: vectors of {lengths[0]} and of {lengths[-1]} numbers cannot be compared; the model "
            "behind this name has changed, so give it another `label` and another parameter"
        )
    return {row["phrase"]: row["vector"] for row in rows}


def _tree_id(field: str, members: Sequence[Row], embedding: Analyst | None) -> str:
    """Identity of a tree by what it is made of, so that an unchanged one is not made twice."""
    by = TFIDF if embedding is None else target_of(embedding).config_hash
    return digest("tree", METHOD, by, field, [
        [row["task_id"], row["criterion_id"], row["criterion_hash"], row["phrase"]] for row in members
    ])[:16]  # fmt: skip


def _store(
    warehouse: Warehouse, common: Row, members: Sequence[Row], vectors: Mapping[str, list[float]] | None,
    embedding: Analyst | None,
) -> None:  # fmt: skip
    of_members = None if vectors is None else [vectors[row["phrase"]] for row in members]
    tree = build_tree([row["phrase"] for row in members], of_members)
    now = datetime.now(UTC)
    nodes = list(_node_rows(common, tree, members, now))
    warehouse.write("capability_members", list(_member_rows(common, tree, nodes, members)))
    warehouse.write("capability_node_rows", nodes)
    # Last, since it says which tree counts.
    warehouse.write("capability_trees", [{
        **common, "vectors": TFIDF if embedding is None else embedding.label, "method": METHOD,
        "n_criteria": len(members), "n_tasks": len({row["task_id"] for row in members}), "created_at": now,
    }])  # fmt: skip


def _node_rows(common: Row, tree: Tree, members: Sequence[Row], now: datetime) -> list[Row]:
    rows: list[Row] = []
    for node, (parent, level) in enumerate(zip(tree.parents, tree.levels, strict=True)):
        under = [members[place] for place in tree.members(node)]
        content = sorted([row["task_id"], row["criterion_id"], row["criterion_hash"]] for row in under)
        rows.append({
            **common, "node_id": digest("node", common["field"], content)[:16],
            "parent_id": None if parent < 0 else rows[parent]["node_id"], "level": level, "position": node,
            "is_leaf": node not in tree.parents, "name": common["field"] if parent < 0 else None,
            "n_criteria": len(under), "n_tasks": len({row["task_id"] for row in under}), "created_at": now,
        })  # fmt: skip
    return rows


def _member_rows(common: Row, tree: Tree, nodes: Sequence[Row], members: Sequence[Row]) -> list[Row]:
    known = (*(name for name in common if name != "field"), "task_id", "criterion_id", "criterion_hash")
    return [
        {name: (common | members[place])[name] for name in known}
        | {"node_id": row["node_id"], "is_leaf": row["is_leaf"]}
        for node, row in enumerate(nodes)
        for place in tree.members(node)
    ]


def write_names(job: Job) -> StageReport:
    """Put the names that were found into the nodes."""
    report, warehouse = StageReport("capabilities"), Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        key = wanted_tasks(job, reader).key
        names = naming_of(job, reader, key, job.settings.capability_model[0]).names
        query = "select * from capability_nodes where benchmark = $benchmark and dataset_revision = $dataset_revision"
        nodes = [dict(row) for row in reader.rows(query, key)]
    now = datetime.now(UTC)
    changed = [
        {**row, "name": names[row["node_id"]], "created_at": now}
        for row in nodes
        if row["node_id"] in names and names[row["node_id"]] != row["name"]
    ]
    if changed:
        warehouse.write("capability_node_rows", changed)
        warehouse.publish()
        report.notes.append(f"{len(changed)} nodes named")
    return report
