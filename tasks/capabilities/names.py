"""A name for each node of the trees, distinct from all others: asked again, with those that are taken, where it is not.

Requests are made in rounds. In each, the nodes that have no name of their own yet are asked about; of nodes that get
the same name, the first keeps it. What is still the same after the last round is told apart by a phrase of the node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sql
from tasks.capabilities.phrases import made_by, phrase_identity, text_question
from tasks.capabilities.replies import NAME
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.llm import OK
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import naming_prompt
from tasks.rules.identity import digest, template_hash
from tasks.run.asking import Analysis, Item
from tasks.run.missing_work import WantedTasks
from warehouse import Reader

TEMPLATE = "capability_name_v1"
ROUNDS = 3
MOST_PHRASES = 40
"""So many of a node's phrases are shown: the most frequent ones, and others evenly spread over the rest."""
Row = Mapping[str, Any]


@dataclass
class Naming:
    """How far naming is: `names` by node (None where a request failed), `items` of all rounds so far.

    `is_finished` is whether no further round follows from what is stored.
    """

    names: dict[str, str | None] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    is_finished: bool = True


def name_items(job: Job, wanted: WantedTasks, reader: Reader, analyst: Analyst) -> list[Item]:
    """The requests for names that what is stored leads to."""
    return naming_of(job, reader, wanted.key, analyst).items


NAMES = Analysis("capabilities", "capability_model", "capability_names", "name_id", name_items, "model")


def naming_of(job: Job, reader: Reader, key: Mapping[str, str], analyst: Analyst) -> Naming:
    """How far the naming of the trees that count is."""
    nodes = list(reader.rows(sql.read("questions/capabilities/node_phrases"), {**key, **phrase_identity(job)}))
    stored = {row["name_id"]: row for row in reader.rows(sql.read("questions/capabilities/names"), dict(key))}
    template = load_analysis_template(TEMPLATE)
    common = {**key, **made_by(analyst, template_hash(template))}
    trees: dict[str, list[Row]] = {}
    for node in nodes:
        trees.setdefault(node["tree_id"], []).append(node)
    whole = Naming()
    for of_tree in trees.values():
        one = _named(of_tree, stored, partial(_item, common, analyst, template))
        # What has failed in this run is tried again by the next one, not by the next round.
        one.items = [item for item in one.items if not _has_failed(stored.get(item.row_id), job.run_id)]
        whole.names |= one.names
        whole.items += one.items
        whole.is_finished &= one.is_finished
    return whole


def _has_failed(row: Row | None, run_id: str) -> bool:
    return row is not None and row["status"] != OK and row["run_id"] == run_id


def _named(nodes: Sequence[Row], stored: Mapping[str, Row], item_of: Any) -> Naming:
    """The rounds of one tree."""
    naming = Naming()
    used: dict[str, str] = {}
    pending, refused = list(nodes), dict[str, str]()
    for attempt in range(1, ROUNDS + 1):
        asked = [(node, item_of(node, attempt, _taken(node, nodes, naming, refused))) for node in pending]
        naming.items += [item for _, item in asked]
        if any(item.row_id not in stored for _, item in asked):
            naming.is_finished = False
            return naming
        pending = []
        for node, item in asked:
            row = stored[item.row_id]
            name = row["name"] if row["status"] == OK else None
            if name is not None and name.casefold() in used:
                refused[node["node_id"]] = name
                pending.append(node)
                continue
            naming.names[node["node_id"]] = name
            if name is not None:
                used[name.casefold()] = node["node_id"]
    for node in pending:
        name = told_apart(refused[node["node_id"]], node["phrases"], used)
        naming.names[node["node_id"]] = name
        used[name.casefold()] = node["node_id"]
    return naming


def _taken(node: Row, nodes: Sequence[Row], naming: Naming, refused: Mapping[str, str]) -> list[str]:
    """The names that a node must not get: the one that it got before, and those of its siblings."""
    if node["node_id"] not in refused:
        return []
    siblings = [each["node_id"] for each in nodes if each["parent_id"] == node["parent_id"]]
    others = {naming.names.get(each) for each in siblings}
    return sorted({refused[node["node_id"]], *(name for name in others if name is not None)})


def told_apart(name: str, phrases: Sequence[str], used: Mapping[str, str]) -> str:
    """A name that others have, with a phrase that no other name has, or with a number."""
    for phrase in phrases:
        if (longer := f"{name}: {phrase}").casefold() not in used:
            return longer
    number = 2
    while f"{name} ({number})".casefold() in used:
        number += 1
    return f"{name} ({number})"


def shown_phrases(phrases: Sequence[str]) -> list[str]:
    """The phrases that a request shows."""
    if len(phrases) <= MOST_PHRASES:
        return list(phrases)
    half = MOST_PHRASES // 2
    rest = phrases[half:]
    return [*phrases[:half], *(rest[place * len(rest) // half] for place in range(half))]


def _item(
    common: Mapping[str, str], analyst: Analyst, template: str, node: Row, attempt: int, taken: Sequence[str]
) -> Item:
    phrases = shown_phrases(node["phrases"])
    return Item(
        row_id=digest("capability name", common, node["node_id"], phrases, attempt, taken),
        group=f"{node['node_id']} {attempt}",
        columns={**common, "node_id": node["node_id"], "attempt": attempt, "name": None},
        question=text_question(analyst, NAME),
        make_prompt=partial(naming_prompt, template, phrases, taken),
    )
