"""The SQL of the project: the models, and the queries of stages and commands.

A model is a file below `marts/` (for users) or `intermediate/` (between stored tables and marts, in
a schema of that name), in a folder for its subject. Its header has `built as` and `depends on`; a
model without `built as` is a step: a temporary table that exists only while others are built.
"""

import re
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
INTERMEDIATE = "intermediate"
_COMMENT = re.compile(r"(?:--[^\n]*\n)*")
"""The comment that a query begins with; empty without one."""
_MEASURE = re.compile(r"\bmeasured\.([a-z]\w*?)(?:_ci_low|_ci_high|_p_value|_n|_is_small|_note)?\b")
"""A measure that a model reads as a column of `intermediate.measured`."""


@dataclass(frozen=True)
class SqlModel:
    """A view or table: its name in queries, kind, query, dependencies, the meaning of a row, and
    its described columns.

    The kind is `view`, `table`, `step` (a temporary table that exists only while others are built),
    or `memory` (a table that is filled after all others, which read its last state). `keeps` is the
    condition on the rows of the table that are kept, since the query has all others; empty for a
    table whose rows are all computed again. A table has no rows if the relation that it `needs` is
    empty.
    """

    name: str
    kind: str
    query: str
    depends_on: tuple[str, ...]
    meaning: str
    columns: dict[str, str]
    keeps: str = ""
    needs: str = ""

    @property
    def relation(self) -> str:
        """What DuckDB creates for the model."""
        return {"step": "temp table", "memory": "table"}.get(self.kind, self.kind)


@cache
def schema() -> dict[str, Any]:
    """Return `schema.yml`: the meaning of a row of each mart, and of the columns that marts add;
    and column titles.
    """
    # libyaml's loader is ten times as fast, and every command that shows a figure needs it.
    loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(
        (FOLDER / "schema.yml").read_text(encoding="utf-8"), loader
    )
    return document


@cache
def models() -> list[SqlModel]:
    """Return every model, in the order in which they are built: each after those that it depends
    on.
    """
    texts: dict[Path, str] = {}
    for folder in ("marts", "intermediate"):
        for path in sorted((FOLDER / folder).rglob("*.sql")):
            texts[path] = read(path.relative_to(FOLDER).with_suffix("").as_posix())
    measures = sorted(set(_MEASURE.findall("\n".join(texts.values()))))
    literals = ", ".join(f"'{name}'" for name in measures)
    models_by_name = {}
    order: TopologicalSorter[str] = TopologicalSorter()
    for path, text in texts.items():
        model = _model(path, text.replace("{measures}", literals))
        models_by_name[model.name] = model
        order.add(model.name, *model.depends_on)
    return [models_by_name[name] for name in order.static_order() if name in models_by_name]


def models_above(changed: set[str]) -> list[SqlModel]:
    """Return the models above changed tables, which must be computed again, in order of building.

    The steps that these depend on are included, since steps are not kept.
    """
    outdated = set(changed)
    for model in models():
        if outdated.intersection(model.depends_on):
            outdated.add(model.name)
    stored_models = {model.name for model in models() if model.kind != "step"}
    return leading_to(outdated, stored_models - outdated)


def leading_to(names: Collection[str], existing: Collection[str] = ()) -> list[SqlModel]:
    """Return the models of these names and those that they depend on, in the order of building.

    Models in `existing` are left out, with what only they depend on.
    """
    required = set(names)
    leading: list[SqlModel] = []
    for model in reversed(models()):
        if model.name in required and model.name not in existing:
            required |= set(model.depends_on)
            leading.insert(0, model)
    return leading


def read(name: str) -> str:
    """Return the text of `<name>.sql` below this folder, or of the query of that name in a file of
    several.

    `read("figures/judges/judge_drift")` is the query `judge_drift` of `figures/judges.sql`. The
    texts that its header includes (`with:`) precede it as common table expressions (CTEs).
    """
    text = _text(name)
    return with_ctes(text, _included(text))


def _included(query: str) -> dict[str, str]:
    """Return the texts that a query includes, by name, each after those that it includes itself."""
    ctes: dict[str, str] = {}
    for path in filter(None, declared("with", query).split(", ")):
        text = _text(path)
        ctes |= _included(text)
        ctes[path.rpartition("/")[2]] = text
    return ctes


def public_tables() -> dict[str, str]:
    """Return the tables for users, each with its subject: the most used first, others by
    subject.
    """
    document = schema()
    subjects = {path.stem: path.parent.name for path in (FOLDER / "marts").rglob("*.sql")}
    for subject, names in document["stored"].items():
        subjects |= dict.fromkeys(names, subject)
    most_used = dict.fromkeys(document["most_used"], "most used")
    less_used = sorted(subjects.keys() - most_used.keys(), key=lambda name: (subjects[name], name))
    return most_used | {name: subjects[name] for name in less_used}


def _text(name: str) -> str:
    path = FOLDER / f"{name}.sql"
    if path.exists():
        return path.read_text(encoding="utf-8").strip().removesuffix(";")
    file, _, query = name.rpartition("/")
    return queries(file)[query]


def named(name: str) -> dict[str, str]:
    """Return the SQL texts of a name, by their kind: of each model, and of each query below
    `queries/`.

    A model's name may begin with its schema, that of a query with its file: `run/missing_verdicts`.
    """
    texts = {
        f"{model.kind} {model.name}": model.query
        for model in models()
        if name in {model.name, model.name.rpartition(".")[2]}
    }
    for file in sorted((FOLDER / "queries").glob("*.sql")):
        for query in queries(f"queries/{file.stem}"):
            path = f"queries/{file.stem}/{query}"
            if path.endswith(f"/{name}"):
                texts[f"query {path}"] = read(path)
    return texts


@cache
def queries(name: str) -> dict[str, str]:
    """Return the queries of the file `<name>.sql` by name: a line `-- name: <name>` precedes
    each.
    """
    text = (FOLDER / f"{name}.sql").read_text(encoding="utf-8")
    # After the beginning of the file, names and texts alternate.
    _, *parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    texts = (text.strip().removesuffix(";") for text in parts[1::2])
    return dict(zip(parts[::2], texts, strict=True))


def template(name: str, **placeholders: str) -> str:
    """Return the text of `<name>.sql` with each `{placeholder}` filled: identifiers, and conditions
    of our own.

    A user's text is never filled in.

    Raises:
        KeyError: a placeholder is not given.
    """
    return read(name).format(**placeholders)


def with_ctes(query: str, ctes: Mapping[str, str]) -> str:
    """Return a query with other queries before it as common table expressions (`with name as
    (...)`), in their order.

    The query and later CTEs read a CTE instead of the model of its name (`intermediate.<name>`,
    `temp.<name>`). One whose header says `materialized: no` is computed anew wherever it is read.
    """
    if not ctes:
        return query
    definitions = []
    for name, text in ctes.items():
        hint = "not materialized " if declared("materialized", text) == "no" else ""
        body = textwrap.indent(_reading(text, ctes), "    ")
        definitions.append(f"{name} as {hint}(\n{body}\n)")
    text = _reading(query, ctes)
    body = _COMMENT.sub("", text, count=1)
    heading = text.removesuffix(body)
    separator = "," if body.startswith("with ") else ""
    all_definitions = ",\n\n".join(definitions)
    return f"{heading}with {all_definitions}{separator}\n\n{body.removeprefix('with ')}"


def _reading(query: str, ctes: Collection[str]) -> str:
    """Return a query that reads CTEs instead of the models with the same names."""
    return re.sub(rf"\b(?:{INTERMEDIATE}|temp)\.({'|'.join(ctes)})\b", r"\1", query)


def declared(header: str, query: str) -> str:
    """Return the text after a word such as `depends on:` in the header of a query, on all its
    lines.

    It is empty without the word.
    """
    match = re.search(rf"^-- {header}:(.*(?:\n--    .*)*)", query, re.MULTILINE)
    return " ".join(match[1].replace("\n--", "").split()) if match else ""


def comment(query: str) -> str:
    """Return the first paragraph of the comment at the beginning of a query."""
    text = query.removesuffix(_COMMENT.sub("", query, count=1))
    paragraph = text.partition("\n--\n")[0]
    return " ".join(line.removeprefix("--").strip() for line in paragraph.splitlines())


def _model(path: Path, query: str) -> SqlModel:
    name = path.stem
    kind = declared("built as", query) or "step"
    if path.relative_to(FOLDER).parts[0] == "marts":
        description = schema()["marts"][name]
    else:
        description = {"meaning": comment(query)}
        name = f"temp.{name}" if kind == "step" else f"{INTERMEDIATE}.{name}"
    return SqlModel(
        name=name,
        kind=kind,
        query=query,
        depends_on=tuple(declared("depends on", query).split(", ")),
        meaning=description["meaning"],
        columns=dict(description.get("columns") or {}),
        keeps=declared("keeps", query),
        needs=declared("needs", query),
    )
