"""The scope of figures: the models, judges and splits that they show, and the queries that run in
it.

The values of parameters are written into a query, so that the shown query is the one that ran.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import count
from operator import itemgetter
from typing import Any

import duckdb

import sql
from expectations import all_expectations
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.compare.pairs import score_name_of
from tasks.config.job import Job
from tasks.figures.figure import NO_PARAMETERS, Figure, Parameters
from tasks.figures.page import Breakdown
from tasks.rules.identity import JUDGE_CONFIG
from tasks.run.judge_configs import first_judge_config
from warehouse import Reader, Row

SAMPLING = ("model", "model_config_hash", "vintage")
"""The columns that identify an entry: one sampling of one configured model."""


@dataclass(frozen=True)
class Table:
    """A small table as a parameter: a query reads `$name as name`.

    Attributes:
        columns: name -> type in DuckDB, which an empty table needs too.
        rows: the values of each row, in the order of the columns.
    """

    columns: Mapping[str, str]
    rows: Sequence[tuple[Any, ...]]

    @property
    def as_sql(self) -> str:
        """The table as a subquery."""
        typed_columns = ", ".join(
            f"{name}::{kind} as {name}" for name, kind in self.columns.items()
        )
        rows = self.rows
        condition = ""
        if not rows:
            # `values` needs a row.
            rows = [(None,) * len(self.columns)]
            condition = " where false"
        values = ",\n    ".join(f"({', '.join(map(literal, row))})" for row in rows)
        names = ", ".join(self.columns)
        return (
            f"(select {typed_columns} from (values\n    {values}\n) as listed ({names}){condition})"
        )


def entry_table(entries: Sequence[Mapping[str, Any]], label: str = "entry") -> Table:
    """Return entries as a parameter; the column `entry` has their names, whose key is `label`."""
    columns = dict.fromkeys((*SAMPLING, "entry"), "varchar")
    return Table(columns, list(map(itemgetter(*SAMPLING, label), entries)))


def judge_config_table(
    judge_configs: Sequence[Mapping[str, Any]], label: str = "judge_config"
) -> Table:
    """Return judge configurations as a parameter; the column `judge_config` has their names, whose
    key is `label`.
    """
    columns = dict.fromkeys((*JUDGE_CONFIG, "judge_config"), "varchar")
    columns["judge_trial"] = "bigint"
    return Table(columns, list(map(itemgetter(*JUDGE_CONFIG, label), judge_configs)))


def literal(value: Any) -> str:
    """Return a value as SQL text."""
    if isinstance(value, Table):
        return value.as_sql
    return str(duckdb.ConstantExpression(value))


_PARAMETER = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|\$(?P<name>\w+)")
"""A parameter of a query; or a text, quoted name or comment, in which `$name` is no parameter."""


def with_literals(query: str, values: Parameters) -> str:
    """Return a query with a literal in place of each `$name`.

    Raises:
        KeyError: a parameter of the query has no value.
    """

    def replacement(match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if name is None else literal(values[name])

    return _PARAMETER.sub(replacement, query)


_CHANGE_COLUMNS = {
    "model": "varchar",
    "model_config_hash": "varchar",
    "judge": "varchar",
    "judge_config_hash": "varchar",
    "template_hash": "varchar",
    "grading": "varchar",
    "judge_trial": "bigint",
    "earlier": "varchar",
    "later": "varchar",
    "split": "varchar",
    "ci_low": "double",
    "ci_high": "double",
    "p_adjusted": "double",
}
"""The columns of the parameter `$changes`, with their types: a model compared with itself earlier,
under one judge configuration.
"""


TableRows = tuple[list[str], list[tuple[Any, ...]]]
"""The columns and the rows of a query."""


@dataclass(frozen=True)
class Scope:
    """A job's data-set revision as one published state shows it.

    An *entry* is one sampling of one configured model; a *judge configuration* is a judge with its
    parameters, template, grading and repetition. Both have labels that are unique in the report;
    the judge configuration shown first is `main`.

    Attributes:
        job: the data set, and the requested splits, models and judges.
        reader: the published state.
        vintage: the requested vintage, `all`, or None for the current ones.
        changes: comparisons of current vintages with earlier ones, computed by the caller.
        living_runs: the ids of the runs whose processes were alive just before the state was
            opened.
        is_hard: true if figures are about own hard selections instead of splits; a figure whose
            parameters have `is_hard` overrides it.
        score: the requested score; None for the benchmark's main one.
        steps: queries that replace the models with the same names (name -> query), and the values
            of the parameters of these queries.
        shared_results: a cache of results that several figures share.
    """

    job: Job
    reader: Reader
    vintage: str | None = None
    changes: Sequence[Mapping[str, Any]] = ()
    living_runs: Sequence[str] = ()
    _: KW_ONLY
    is_hard: bool = False
    score: str | None = None
    steps: tuple[Mapping[str, str], Parameters] = ({}, {})
    shared_results: dict[Any, dict[str, list[Row]]] = field(
        default_factory=dict, init=False, compare=False
    )
    _tables: dict[str, TableRows] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark of the job."""
        return load_benchmark(self.job.benchmark)

    @cached_property
    def _scope_parameters(self) -> dict[str, Any]:
        """The parameters of the queries that find the scope itself: the data set, the requested
        splits, models and judges (empty: all), the hard splits of the benchmark, and the splits
        that are shown.
        """
        parameters: dict[str, Any] = {
            **self.job.key,
            "splits": list(self.job.settings.dataset.splits),
            "hard_splits": sorted(self.benchmark.hard_splits.values()),
            "models": list(self.job.named_models or ()),
            "judges": list(self.job.named_judges or ()),
            "vintage": self.vintage,
        }
        splits = self.reader.rows(with_literals(sql.read("figures/scope/splits"), parameters))
        rows = list(map(itemgetter("split", "is_hard"), splits))
        parameters["shown_splits"] = Table({"split": "varchar", "is_hard": "boolean"}, rows)
        return parameters

    def _scope_rows(self, name: str, **values: Any) -> list[Row]:
        """Return the rows of a query that finds the scope itself."""
        query = sql.read(f"figures/scope/{name}")
        return self.reader.rows(with_literals(query, self._scope_parameters | values))

    @cached_property
    def judge_configs(self) -> list[Row]:
        """The judge configurations, those with most scored tasks first.

        Each has a label, `judge_config`: the judge's name, and what tells it from others. A judge
        with `has_board: false` has none unless it is named.
        """
        hidden_judges = self.job.hidden_judges
        rows = self._scope_rows("judge_configs")
        rows = [row for row in rows if row["judge"] not in hidden_judges]
        # `{:.8}` shows the first eight characters.
        parts = (
            ("judge_trial", "#{}"),
            ("grading", "{}"),
            ("template_hash", "template {:.8}"),
            ("judge_config_hash", "configuration {:.8}"),
        )
        return with_labels(rows, "judge_config", "label_start", parts)

    @cached_property
    def entries(self) -> list[Row]:
        """Each model's current vintages, or the requested one, or all; the best first.

        A model may have several current vintages: they may differ between judge configurations and
        between splits.
        """
        rows = self._scope_rows(
            "entries", shown_judge_configs=judge_config_table(self.judge_configs)
        )
        parts = (("vintage", "{}"), ("model_config_hash", "{:.8}"))
        return with_labels(rows, "entry", "model", parts)

    @cached_property
    def selections(self) -> list[Row]:
        """The own hard selections whose tasks all belong to the report; only these are shown."""
        return self._scope_rows("selections")

    @cached_property
    def split_limit(self) -> str:
        """The splits that the report is limited to, as text (such as `splits a, b`); empty if it is
        of all tasks.
        """
        splits = self.job.settings.dataset.splits
        if not splits or not self._scope_rows("left_out")[0]["n_tasks"]:
            return ""
        noun = "splits" if len(splits) > 1 else "split"
        return f"{noun} {', '.join(splits)}"

    @cached_property
    def main(self) -> str | None:
        """The judge configuration that is shown first."""
        first = first_judge_config(self.job, self.benchmark, self.judge_configs)
        return first["judge_config"] if first else None

    def has_rows(self, table: str) -> bool:
        """Return whether a table has rows on the benchmark and the revision."""
        return bool(self.reader.select(table, "count(*) as n", **self.job.key)[0]["n"])

    @cached_property
    def _kind_rows(self) -> list[Row]:
        return self._scope_rows("kinds")

    @cached_property
    def kinds(self) -> dict[str, bool]:
        """The kinds of labels that tasks or criteria have here -> whether criteria have them."""
        return {row["kind"]: row["of_criteria"] for row in self._kind_rows}

    @cached_property
    def annotation_notes(self) -> dict[str, str]:
        """Kind of label -> a sentence about labels of that kind that are not the data set's."""
        sentences = {}
        for row in self._scope_rows("annotated"):
            sentences[row["kind"]] = (
                f"The labels of {row['n_annotated']} of {row['n_tasks']} tasks come from a model "
                f"({', '.join(row['annotators'])}), because the data set gives none."
            )
        return sentences

    @cached_property
    def own_breakdowns(self) -> tuple[Breakdown, ...]:
        """The kinds of labels that only this benchmark declares and that occur in the data, in the
        declared order.
        """
        rows = {
            row["kind"]: row for row in self._kind_rows if row["is_own"] and not row["is_category"]
        }
        return tuple(
            Breakdown(kind, title, rows[kind]["of_criteria"])
            for kind, title in self.benchmark.own_breakdowns.items()
            if kind in rows
        )

    @cached_property
    def category_title(self) -> str | None:
        """The benchmark's name for the categories of criteria; None without one."""
        for row in self._kind_rows:
            if row["is_category"]:
                return self.benchmark.breakdowns.get(row["kind"])
        return None

    @cached_property
    def query_parameters(self) -> dict[str, Any]:
        """The parameters of the queries below `sql/figures/`, by name.

        Raises:
            UsageError: the benchmark has no such score.
        """
        reference = self.benchmark.review_reference
        return self._scope_parameters | {
            "score": score_name_of(self.benchmark, self.score),
            "label_score": self.score or self.benchmark.criteria_score.score_name,
            "is_hard": self.is_hard,
            # No restriction to graders; `prbench judges` may give some.
            "graders": [],
            "selections": [selection["selection_id"] for selection in self.selections],
            "bar": self.job.settings.coverage.min,
            "main": self.main,
            "reviewed_share": reference.value if reference else None,
            "run": self.job.run_id,
            "living": list(self.living_runs),
            "entries": entry_table(self.entries),
            "shown_judge_configs": judge_config_table(self.judge_configs),
            "changes": Table(
                _CHANGE_COLUMNS, list(map(itemgetter(*_CHANGE_COLUMNS), self.changes))
            ),
            "expectations": self._expectation_table(),
        }

    def _expectation_table(self) -> Table:
        columns = dict.fromkeys(("check_name", "expectation", "meaning"), "varchar")
        expectations = all_expectations(self.benchmark.invariants)
        return Table(columns, [(check.check, check.text, check.meaning) for check in expectations])

    def _set_table(self, is_hard: bool | None) -> Table:
        """Return the shown task sets: the own hard selections (True), the splits (False), or both
        (None, which only the parameters of a figure give).

        The column `is_hard` is true for hard splits too, `is_own_hard` only for own selections.
        """
        rows = []
        if not is_hard:
            for split, is_hard_split in self._scope_parameters["shown_splits"].rows:
                rows.append((split, False, is_hard_split))
        if is_hard is not False:
            rows += [(selection["split"], True, True) for selection in self.selections]
        columns = {"split": "varchar", "is_own_hard": "boolean", "is_hard": "boolean"}
        return Table(columns, rows)

    def filled(self, query: str, parameters: Parameters = NO_PARAMETERS) -> str:
        """Return a query with `steps` before it and literals in place of its parameters.

        Args:
            query: its path below `sql/`, such as `figures/judges/judge_drift`.
            parameters: further parameters, or others in place of those of the scope.
        """
        steps, step_values = self.steps
        values = {**self.query_parameters, **step_values, **parameters}
        values["shown_sets"] = self._set_table(values["is_hard"])
        return with_literals(sql.with_ctes(sql.read(query), steps), values)

    def rows(self, query: str, parameters: Parameters = NO_PARAMETERS) -> list[Row]:
        """Return the rows of a query in this scope (`filled`)."""
        return self.filled_rows(self.filled(query, parameters))

    def query_of(self, figure: Figure, parameters: Parameters = NO_PARAMETERS) -> str:
        """Return the query of a figure in this scope; `parameters` replace the figure's."""
        return self.filled(f"figures/{figure.query}", {**figure.parameters, **parameters})

    def rows_of(self, figure: Figure, parameters: Parameters = NO_PARAMETERS) -> list[Row]:
        """Return the rows of a figure in this scope; `parameters` replace the figure's."""
        if figure.compute is not None:
            return figure.compute(
                self, {**self.query_parameters, **figure.parameters, **parameters}
            )
        return self.filled_rows(self.query_of(figure, parameters))

    def table(self, query: str) -> TableRows:
        """Return the columns and the rows of a filled query.

        Each query runs once, because several figures and notices have the same one.
        """
        if query not in self._tables:
            self._tables[query] = self.reader.table(query)
        return self._tables[query]

    def filled_rows(self, query: str) -> list[Row]:
        """Return the rows of a filled query (`table`): column -> value."""
        columns, rows = self.table(query)
        return [dict(zip(columns, row, strict=True)) for row in rows]


def with_labels(
    rows: Sequence[Row],
    label: str,
    name: str,
    parts: Iterable[tuple[str, str]],
) -> list[Row]:
    """Return rows with a column `label` that is unique.

    It is the value of the column `name`, followed by those of `parts` (a column and the format of
    its values as texts) that tell rows of the same name apart.
    """
    labelled = [{**row, label: row[name]} for row in rows]
    for part, shape in parts:
        counts = Counter(row[label] for row in labelled)
        counts_by_value = Counter((row[label], row[part]) for row in labelled)
        for row in labelled:
            is_shared_by_all = counts_by_value[row[label], row[part]] == counts[row[label]]
            # A judge's first repetition has the judge's name.
            is_first_trial = part == "judge_trial" and row[part] == 1
            if not is_shared_by_all and not is_first_trial:
                row[label] = f"{row[label]} {shape.format(str(row[part] or 'none'))}"
    # An extended label may equal another row's name.
    labels: set[str] = set()
    for row in labelled:
        extended_label = row[label]
        numbers = count(2)
        while row[label] in labels:
            row[label] = f"{extended_label} ({next(numbers)})"
        labels.add(row[label])
    return labelled
