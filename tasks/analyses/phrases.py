"""Phrases of capabilities, vectors of the phrases, and names of nodes, with a call for each."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import chain, count, groupby
from operator import itemgetter
from typing import Any

from tasks.analyses import provenance
from tasks.config.job import Job
from tasks.config.models import Analyst
from tasks.llm.replies import OK
from tasks.prompts import load_analysis_template
from tasks.rules.conversation import naming_prompt, prompt_on
from tasks.rules.errors import UsageError, install_extra
from tasks.rules.identity import digest, template_hash
from tasks.rules.text.characters import one_line, shows_nothing, storable, visible_only
from tasks.rules.verdict import VerdictError, json_object, strict_format
from tasks.run.calls import Analysis, Columns, Item, ReplySpec
from tasks.run.judge_configs import target_of
from tasks.run.missing_work import WantedTasks, assembled_conversations
from warehouse import Reader, Row

# The kinds of short texts. A kind is the key of the only value in a reply's JSON object, so it is
# also the word for the text in error messages.
PHRASE = "capability"
NAME = "name"
_COLUMN = {PHRASE: "phrase", NAME: "name"}
"""Kind -> the column that stores the text."""
_MOST_CHARS = {PHRASE: 300, NAME: 120}
"""Kind -> the largest length of the text in a reply."""
CRITERION = ("task_id", "criterion_id", "criterion_hash")
"""The columns that identify a criterion."""


def text_reply_spec(analyst: Analyst, kind: str) -> ReplySpec[Columns]:
    """Return the reply spec of a short text: a phrase or a name."""

    def read(reply: str) -> Columns:
        text = read_text(reply, kind, omits_think_tag=analyst.omits_think_tag)
        return {_COLUMN[kind]: text}

    return ReplySpec(
        read=read,
        shape=strict_format(kind, {kind: {"type": "string"}}),
        reminder=(
            f'Reply again with only the JSON object: {{"{kind}": "..."}}. The text is one short'
            " phrase."
        ),
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


def vector_reply_spec() -> ReplySpec[Columns]:
    """Return the reply spec of a vector, with neither a response format nor a reminder."""

    def read(reply: str) -> Columns:
        return {"vector": [float(entry) for entry in json.loads(reply)]}

    return ReplySpec(read, shape={}, reminder="")


PHRASE_TEMPLATE = "capability_v1"


def refuse_unready_capabilities(job: Job) -> None:
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


def phrase_items(
    job: Job,
    selected_tasks: WantedTasks,
    reader: Reader,
    analyst: Analyst,
) -> list[Item]:
    """Return an item for each criterion of the wanted tasks: the request for its phrase.

    Raises:
        PipelineError: a task has no assembled conversation.
    """
    template = load_analysis_template(PHRASE_TEMPLATE)
    origin = {**selected_tasks.key, **provenance("model", analyst, template_hash(template))}
    columns = "task_id, criterion_id, content_hash as criterion_hash, title"
    rows = reader.select(
        "criteria",
        columns,
        order="task_id, position",
        **selected_tasks.key,
        task_id=list(selected_tasks.task_ids),
    )
    conversations = assembled_conversations(reader, selected_tasks, selected_tasks.task_ids)
    reply_spec = text_reply_spec(analyst, PHRASE)
    items = []
    for row in rows:
        conversation = conversations[row["task_id"]]
        criterion = {name: row[name] for name in CRITERION}
        items.append(
            Item(
                row_id=digest("capability", origin, criterion, conversation.conversation_id),
                group=row["task_id"],
                columns={**origin, **criterion, "phrase": None},
                reply_spec=reply_spec,
                prompt=partial(prompt_on, template, conversation.messages, row["title"]),
            )
        )
    return items


def phrase_identity(job: Job) -> dict[str, str]:
    """Return the values that all phrases of the only configured model share."""
    target = target_of(job.settings.capability_model[0])
    template = load_analysis_template(PHRASE_TEMPLATE)
    return {"model_config_hash": target.config_hash, "template_hash": template_hash(template)}


def stored_phrases(job: Job, reader: Reader, key: Mapping[str, str]) -> list[Row]:
    """Return all criteria with a phrase by the configured model, by field, task and criterion."""
    return reader.query("queries/capabilities/phrases", {**key, **phrase_identity(job)})


def embedding_items(
    job: Job,
    selected_tasks: WantedTasks,
    reader: Reader,
    analyst: Analyst,
) -> list[Item]:
    """Return an item for each distinct phrase: the request for its vector."""
    origin = {**selected_tasks.key, **provenance("model", analyst, "")}
    phrases = {row["phrase"] for row in stored_phrases(job, reader, selected_tasks.key)}
    return [
        Item(
            row_id=digest("embedding", origin, phrase),
            group=phrase,
            reply_spec=vector_reply_spec(),
            columns={**origin, "phrase": phrase, "vector": None},
            # A prompt is a function, called when the request is sent; here it returns the phrase.
            prompt=partial(str, phrase),
        )
        for phrase in sorted(phrases)
    ]


PHRASES = Analysis(
    stage="capabilities",
    settings_key="capability_model",
    table="criterion_capabilities",
    id_column="capability_id",
    analyst_column="model",
    items_of=phrase_items,
)
EMBEDDINGS = Analysis(
    stage="capabilities",
    settings_key="capability_embedding",
    table="phrase_embeddings",
    id_column="embedding_id",
    analyst_column="model",
    items_of=embedding_items,
)


NAME_TEMPLATE = "capability_name_v1"
ROUNDS = 3
"""Largest number of requests for the name of a node (see `naming_of`)."""
MOST_PHRASES = 40
"""Largest number of a node's phrases in a request (see `shown_phrases`)."""
NodeRow = Mapping[str, Any]
"""A node of a tree: its id, its parent's, and its phrases, the most frequent first."""


def naming_of(
    job: Job,
    reader: Reader,
    key: Mapping[str, str],
) -> tuple[dict[str, str | None], list[Item]]:
    """Return the names of current tree nodes (None where a request failed), and their requests.

    Requests are made in rounds. Each round requests names for nodes without a unique name; of nodes
    with the same name, the first keeps it. Names that are still equal after the last round are
    extended by a phrase.

    The requests include those with a stored reply, of all rounds so far: the stage sends those
    without one, and repeats failed ones, except those that failed in this run.
    """
    parameters = {**key, **phrase_identity(job)}
    nodes = reader.query("queries/capabilities/node_phrases", parameters)
    replies = {row["name_id"]: row for row in reader.select("capability_names", **key)}
    analyst = job.settings.capability_model[0]
    template_id = template_hash(load_analysis_template(NAME_TEMPLATE))
    origin = {**key, **provenance("model", analyst, template_id)}
    names: dict[str, str | None] = {}
    items: list[Item] = []
    for _, group in groupby(nodes, key=itemgetter("tree_id")):
        naming = TreeNaming(list(group), replies, origin, analyst)
        naming.name_all()
        names |= naming.names
        items += naming.items
    # A request that failed in this run is retried by the next run, not by the next round.
    retried_later = {
        name_id
        for name_id, row in replies.items()
        if row["status"] != OK and row["run_id"] == job.run_id
    }
    return names, [item for item in items if item.row_id not in retried_later]


@dataclass
class TreeNaming:
    """The naming of the nodes of one tree: names so far, and all requests for them.

    Attributes:
        nodes: all nodes of the tree.
        replies: the stored ones, by the id of their request.
        origin: the columns that all requests share.
        names: node id -> name, None where the request failed.
        items: the requests.
        folded_names: the names in lower case.
        taken_names: node id -> the last name in a reply for the node that another node already had.
    """

    nodes: Sequence[NodeRow]
    replies: Mapping[str, Mapping[str, Any]]
    origin: Mapping[str, str]
    analyst: Analyst
    names: dict[str, str | None] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    folded_names: set[str] = field(default_factory=set)
    taken_names: dict[str, str] = field(default_factory=dict)

    def name_all(self) -> None:
        """Name the nodes as far as replies are stored.

        The requests are collected up to the first round that lacks a reply.
        """
        pending = list(self.nodes)
        for attempt in range(1, ROUNDS + 1):
            items = [self._item(node, attempt) for node in pending]
            self.items += items
            if any(item.row_id not in self.replies for item in items):
                return
            unnamed_nodes = []
            for node, item in zip(pending, items, strict=True):
                name = self.replies[item.row_id]["name"]
                if name is not None and name.casefold() in self.folded_names:
                    self.taken_names[node["node_id"]] = name
                    unnamed_nodes.append(node)
                else:
                    # None after a failure: the node gets no name until a later run repeats it.
                    self._give(node, name)
            pending = unnamed_nodes
        for node in pending:
            taken_name = self.taken_names[node["node_id"]]
            self._give(node, unique_name(taken_name, node["phrases"], self.folded_names))

    def _give(self, node: NodeRow, name: str | None) -> None:
        self.names[node["node_id"]] = name
        if name is not None:
            self.folded_names.add(name.casefold())

    def _forbidden(self, node: NodeRow) -> list[str]:
        """Return the names that a request forbids: the node's taken name and its siblings' names.

        A node's first request forbids none.
        """
        if node["node_id"] not in self.taken_names:
            return []
        names = {self.taken_names[node["node_id"]]}
        for sibling in self.nodes:
            name = self.names.get(sibling["node_id"])
            if name and sibling["parent_id"] == node["parent_id"]:
                names.add(name)
        return sorted(names)

    def _item(self, node: NodeRow, attempt: int) -> Item:
        node_id = node["node_id"]
        phrases = shown_phrases(node["phrases"])
        forbidden = self._forbidden(node)
        template = load_analysis_template(NAME_TEMPLATE)
        return Item(
            row_id=digest("capability name", self.origin, node_id, phrases, attempt, forbidden),
            group=f"{node_id} {attempt}",
            reply_spec=text_reply_spec(self.analyst, NAME),
            columns={**self.origin, "node_id": node_id, "attempt": attempt, "name": None},
            prompt=partial(naming_prompt, template, phrases, forbidden),
        )


def unique_name(name: str, phrases: Sequence[str], folded_names: Collection[str]) -> str:
    """Return a name, made unique by a phrase or a number; it may be longer than one in a reply."""
    with_phrases = (f"{name}: {phrase}" for phrase in phrases)
    with_numbers = (f"{name} ({number})" for number in count(2))
    longer_names = chain(with_phrases, with_numbers)
    return next(longer for longer in longer_names if longer.casefold() not in folded_names)


def shown_phrases(phrases: Sequence[str]) -> list[str]:
    """Return the phrases to show in a request: all, or `MOST_PHRASES` of them.

    Half of these are the first (the most frequent) ones, half are evenly spread over the rest.
    """
    if len(phrases) <= MOST_PHRASES:
        return [*phrases]
    half = MOST_PHRASES // 2
    rest = phrases[half:]
    return [*phrases[:half], *(rest[index * len(rest) // half] for index in range(half))]


NAMES = Analysis(
    stage="capabilities",
    settings_key="capability_model",
    table="capability_names",
    id_column="name_id",
    analyst_column="model",
    items_of=lambda job, tasks, reader, _: naming_of(job, reader, tasks.key)[1],
)
"""The requests for names; those of later rounds depend on the stored replies of earlier ones."""
