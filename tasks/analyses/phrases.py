"""Phrases for the capabilities that criteria need, vectors of the phrases, and names of nodes, with
a call for each.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain, count, groupby
from typing import Any

import sql
from tasks.analyses import assembled, provenance
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.llm.replies import OK
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import naming_prompt, prompt_on
from tasks.rules.errors import UsageError, install_extra
from tasks.rules.identity import digest, template_hash
from tasks.rules.text.characters import one_line, shows_nothing, storable, visible_only
from tasks.rules.verdict import VerdictError, json_object, strict_format
from tasks.run.calls import Analysis, Item, ReplySpec
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import WantedTasks
from warehouse import Reader

PHRASE = "capability"
NAME = "name"
"""The key of a reply's only value."""
_COLUMN = {PHRASE: "phrase", NAME: "name"}
_MOST_CHARS = {PHRASE: 300, NAME: 120}
Row = Mapping[str, Any]


def text_reply_spec(analyst: Analyst, kind: str) -> ReplySpec[Row]:
    """Return the reply spec of a short text: a phrase or a name."""
    return ReplySpec(
        lambda reply: {
            _COLUMN[kind]: read_text(reply, kind, omits_think_tag=analyst.omits_think_tag)
        },
        strict_format(kind, {kind: {"type": "string"}}),
        f'Reply again with only the JSON object: {{"{kind}": "..."}}. The text is one short'
        " phrase.",
    )


def read_text(reply: str, kind: str, *, omits_think_tag: bool = False) -> str:
    """Return the phrase or name in a reply, in one line.

    Raises:
        VerdictError: the reply is not one JSON object with exactly this text, or the text is blank
            or long.
    """
    content = json_object(reply, omits_think_tag=omits_think_tag)
    text = content.get(kind)
    if set(content) != {kind} or not isinstance(text, str):
        raise VerdictError(f"not exactly one text {kind}")
    # Names that differ only in invisible characters are the same name.
    text = visible_only(" ".join(storable(text).split()))
    if shows_nothing(text):
        raise VerdictError(f"{kind} is blank")
    if len(text) > _MOST_CHARS[kind]:
        raise VerdictError(
            f"{kind} has more than {_MOST_CHARS[kind]} characters, so it is not a short phrase"
        )
    return one_line(text)


def vector_reply_spec() -> ReplySpec[Row]:
    """Return the reply spec of a vector; an embedding model needs neither a shape nor a
    reminder.
    """
    return ReplySpec(lambda reply: {"vector": [float(each) for each in json.loads(reply)]}, {}, "")


PHRASE_TEMPLATE = "capability_v1"


def refuse_unready(job: Job) -> None:
    """Refuse a job that cannot describe capabilities, before it makes a call.

    Raises:
        UsageError: it names no model for capabilities, or scikit-learn is not installed.
    """
    if find_spec("sklearn") is None:
        extra = install_extra("capabilities")
        raise UsageError(f"the tree of capabilities needs scikit-learn; install it with {extra}")
    if not job.settings.capability_model:
        raise UsageError(
            "no model describes capabilities; set `capabilities: {model: {name: ...}}`"
        )


def phrase_items(job: Job, wanted: WantedTasks, reader: Reader, analyst: Analyst) -> list[Item]:
    """Return an item for each criterion of the wanted tasks: the request for its phrase.

    Raises:
        PipelineError: a task has no assembled conversation.
    """
    template = load_analysis_template(PHRASE_TEMPLATE)
    common = {**wanted.key, **provenance("model", analyst, template_hash(template))}
    columns = "task_id, criterion_id, content_hash as criterion_hash, title"
    rows = reader.select(
        "criteria", columns, order="task_id, position", **wanted.key, task_id=list(wanted.task_ids)
    )
    conversations = assembled(reader, wanted)
    reply_spec = text_reply_spec(analyst, PHRASE)
    items = []
    for row in rows:
        conversation = conversations[row["task_id"]]
        given = {name: row[name] for name in ("task_id", "criterion_id", "criterion_hash")}
        items.append(
            Item(
                row_id=digest("capability", common, given, conversation.conversation_id),
                group=row["task_id"],
                columns={
                    **common,
                    **given,
                    "phrase": None,
                },
                reply_spec=reply_spec,
                prompt=partial(prompt_on, template, conversation.messages, row["title"]),
            )
        )
    return items


def phrase_identity(job: Job) -> dict[str, str]:
    """Return the values that all phrases of the configured model share."""
    target = target_of(job.settings.capability_model[0])
    template = load_analysis_template(PHRASE_TEMPLATE)
    return {"model_config_hash": target.config_hash, "template_hash": template_hash(template)}


def stored_phrases(job: Job, reader: Reader, key: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return all criteria that have a phrase by the configured model, by field, task and
    criterion.
    """
    return reader.rows(sql.read("queries/capabilities/phrases"), {**key, **phrase_identity(job)})


def embedding_items(job: Job, wanted: WantedTasks, reader: Reader, analyst: Analyst) -> list[Item]:
    """Return an item for each distinct phrase: the request for its vector."""
    common = {**wanted.key, **provenance("model", analyst, "")}
    return [
        Item(
            row_id=digest("embedding", common, phrase),
            group=phrase,
            reply_spec=vector_reply_spec(),
            columns={
                **common,
                "phrase": phrase,
                "vector": None,
            },
            prompt=partial(str, phrase),
        )
        for phrase in sorted({row["phrase"] for row in stored_phrases(job, reader, wanted.key)})
    ]


PHRASES = Analysis(
    "capabilities",
    "capability_model",
    "criterion_capabilities",
    "capability_id",
    "model",
    phrase_items,
)
EMBEDDINGS = Analysis(
    "capabilities",
    "capability_embedding",
    "phrase_embeddings",
    "embedding_id",
    "model",
    embedding_items,
)


NAME_TEMPLATE = "capability_name_v1"
ROUNDS = 3
MOST_PHRASES = 40
"""Number of a node's phrases in a request: the most frequent ones, and others evenly spread over
the rest.
"""


def naming_of(
    job: Job, reader: Reader, key: Mapping[str, str]
) -> tuple[dict[str, str | None], list[Item]]:
    """Return the names of current tree nodes (None where a request failed), and all requests so
    far.

    Requests are made in rounds. Each round requests names for nodes without a unique name; of nodes
    with the same name, the first keeps it. Names that are still equal after the last round are
    extended by a phrase.
    """
    nodes = reader.rows(
        sql.read("queries/capabilities/node_phrases"), {**key, **phrase_identity(job)}
    )
    stored = {row["name_id"]: row for row in reader.select("capability_names", **key)}
    template = load_analysis_template(NAME_TEMPLATE)
    analyst = job.settings.capability_model[0]
    common = {**key, **provenance("model", analyst, template_hash(template))}
    names: dict[str, str | None] = {}
    items: list[Item] = []
    for _, of_tree in groupby(nodes, key=lambda node: node["tree_id"]):
        of_nodes, requested = _named(
            list(of_tree), stored, partial(_item, common, analyst, template)
        )
        names |= of_nodes
        items += requested
    # A request that failed in this run is retried by the next run, not by the next round.
    has_failed = {
        name_id
        for name_id, row in stored.items()
        if row["status"] != OK and row["run_id"] == job.run_id
    }
    return names, [item for item in items if item.row_id not in has_failed]


def _named(
    nodes: Sequence[Row],
    stored: Mapping[str, Row],
    item_of: Callable[[Row, int, Sequence[str]], Item],
) -> tuple[dict[str, str | None], list[Item]]:
    """Return the names of one tree's nodes, and all requests for them."""
    names: dict[str, str | None] = {}
    items: list[Item] = []
    used: set[str] = set()
    refused: dict[str, str] = {}
    pending = list(nodes)
    for attempt in range(1, ROUNDS + 1):
        requested = [
            (node, item_of(node, attempt, _taken(node, nodes, names, refused))) for node in pending
        ]
        items += [item for _, item in requested]
        if any(item.row_id not in stored for _, item in requested):
            return names, items
        pending = []
        for node, item in requested:
            name = stored[item.row_id]["name"]  # None after a failure
            if name is not None and name.casefold() in used:
                refused[node["node_id"]] = name
                pending.append(node)
            else:
                names[node["node_id"]] = name
                used |= {name.casefold()} if name is not None else set()
    for node in pending:
        names[node["node_id"]] = name = unique_name(refused[node["node_id"]], node["phrases"], used)
        used.add(name.casefold())
    return names, items


def _taken(
    node: Row, nodes: Sequence[Row], names: Mapping[str, str | None], refused: Mapping[str, str]
) -> list[str]:
    """Return the names that a node must not get: its own earlier one, and those of its siblings."""
    if node["node_id"] not in refused:
        return []
    others = {
        names.get(each["node_id"]) for each in nodes if each["parent_id"] == node["parent_id"]
    }
    return sorted({refused[node["node_id"]], *filter(None, others)})


def unique_name(name: str, phrases: Sequence[str], used: Collection[str]) -> str:
    """Return a name, made unique by a phrase or a number."""
    longer = chain(
        (f"{name}: {phrase}" for phrase in phrases), (f"{name} ({number})" for number in count(2))
    )
    return next(each for each in longer if each.casefold() not in used)


def shown_phrases(phrases: Sequence[str]) -> list[str]:
    """Return the phrases in a request."""
    half = MOST_PHRASES // 2
    rest = phrases[half:]
    spread = (
        rest
        if len(phrases) <= MOST_PHRASES
        else [rest[index * len(rest) // half] for index in range(half)]
    )
    return [*phrases[:half], *spread]


def _item(
    common: Mapping[str, str],
    analyst: Analyst,
    template: str,
    node: Row,
    attempt: int,
    taken: Sequence[str],
) -> Item:
    phrases = shown_phrases(node["phrases"])
    return Item(
        row_id=digest("capability name", common, node["node_id"], phrases, attempt, taken),
        group=f"{node['node_id']} {attempt}",
        reply_spec=text_reply_spec(analyst, NAME),
        columns={
            **common,
            "node_id": node["node_id"],
            "attempt": attempt,
            "name": None,
        },
        prompt=partial(naming_prompt, template, phrases, taken),
    )


NAMES = Analysis(
    "capabilities",
    "capability_model",
    "capability_names",
    "name_id",
    "model",
    lambda job, wanted, reader, _: naming_of(job, reader, wanted.key)[1],
)
"""The requests for names that follow from the stored data."""
