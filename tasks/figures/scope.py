"""The scope of a report: the models, judges and splits that its figures show, their names, and
query parameters.

Names in files and addresses are digests, so they reveal no text. A name depends only on its object,
so it stays the same when other tasks or models are added. Values are written into queries, so that
the shown query is the one that ran.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count, islice
from typing import Any
from urllib.parse import urlencode

from expectations import all_expectations
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.compare.pairs import score_name_of
from tasks.config.job import Job
from tasks.figures.figure import Breakdown, Figure
from tasks.figures.queries import JUDGE_CONFIG, SAMPLING, Rows, filled, text_of
from tasks.rules.identity import digest
from tasks.rules.verdict import TERNARY_AS_BINARY
from tasks.run.judge_configs import first_judge_config
from warehouse import Reader

_HEX = 16


def task_key(task_id: str) -> str:
    """Return the name of a task."""
    return digest("task", task_id)[:_HEX]


def entry_key(entry: Mapping[str, Any]) -> str:
    """Return the name of one sampling of a configured model."""
    return digest("entry", *(entry[column] for column in SAMPLING))[:_HEX]


def judge_config_key(judge_config: Mapping[str, Any]) -> str:
    """Return the key of a judge configuration in files and addresses."""
    return digest("judging", *(judge_config[column] for column in JUDGE_CONFIG))[:_HEX]


def side_by_side(
    first: Sequence[str], second: Sequence[str]
) -> Callable[[Iterable[Mapping[str, Any]]], list[dict[str, Any]]]:
    """Return a function that adds to each row the address of a page with two responses, at its
    criterion if it has one.

    `first` and `second` name the columns with the sampling (model, its hash, vintage) of each
    response.
    """

    def address(row: Mapping[str, Any]) -> str:
        both = (
            dict(zip(SAMPLING, (row[name] for name in side), strict=True))
            for side in (first, second)
        )
        return task_address(row["task_id"], next(both), next(both), row.get("criterion_id"))

    return lambda rows: [{**row, "address": address(row)} for row in rows]


def criterion_key(criterion_id: str) -> str:
    """Return the name of a criterion within its task: the beginning of `sha256(criterion_id)` as in
    SQL.
    """
    return hashlib.sha256(criterion_id.encode()).hexdigest()[:_HEX]


def task_address(
    task_id: str,
    first: Mapping[str, Any] | None = None,
    second: Mapping[str, Any] | None = None,
    criterion_id: str | None = None,
) -> str:
    """Return the link to a task's page: with the responses of one or two entries, at one of its
    criteria.
    """
    parts = {
        "task": task_key(task_id),
        "a": entry_key(first) if first else None,
        "b": entry_key(second) if second else None,
        "criterion": criterion_key(criterion_id) if criterion_id is not None else None,
    }
    return "task.html#" + urlencode({name: part for name, part in parts.items() if part})


@dataclass(frozen=True)
class Scope:
    """A job's data-set revision as one published state shows it.

    An *entry* is one sampling of one configured model; a *judge configuration* is a judge with its
    parameters, template, grading and repetition. Both have labels that are unique in the report;
    the judge configuration shown first is `main`. `vintage` is None for the current ones, or `all`.
    `changes` are comparisons of current vintages with earlier ones, computed by the caller.
    `living` are the runs whose processes were alive just before the state was opened. `is_hard` is
    true if figures are about own hard selections instead of splits; `score` is the requested score.
    `steps` replace the models with the same names in queries, with their parameters. `known` are
    results that several figures share.
    """

    job: Job
    reader: Reader
    vintage: str | None = None
    changes: Sequence[Mapping[str, Any]] = ()
    living: Sequence[str] = ()
    is_hard: bool = field(default=False, kw_only=True)
    score: str | None = field(default=None, kw_only=True)
    steps: tuple[Mapping[str, str], Mapping[str, Any]] = field(default=({}, {}), kw_only=True)
    known: dict[Any, dict[str, list[dict[str, Any]]]] = field(
        default_factory=dict,
        init=False,
        compare=False,
    )

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark of the job."""
        return load_benchmark(self.job.settings.benchmark)

    @property
    def revision(self) -> str:
        """The revision of its data set."""
        return self.job.data.revision

    @cached_property
    def judge_configs(self) -> list[dict[str, Any]]:
        """The judge configurations, those with most verdicts first.

        A label is the judge's name, and what tells it from others (`judge_config`).
        """
        read_as = {TERNARY_AS_BINARY: " (as binary)"}
        rows = self.reader.rows(filled("scope/judge_configs", self.given_members))
        named = [{**row, "named": row["judge"] + read_as.get(row["grading"], "")} for row in rows]
        return with_labels(
            named,
            "judge_config",
            "named",
            (
                ("judge_trial", "#{}"),
                ("grading", "{}"),
                ("template_hash", "template {:.8}"),
                ("judge_config_hash", "configuration {:.8}"),
            ),
        )

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """Each model's current vintages, or the requested one, or all; the best first.

        A model may have several: another one under another judge configuration, or on another
        split.
        """
        shown = Rows.of(self.judge_configs, (*JUDGE_CONFIG, "judge_config"))
        given = {
            **self.given_members,
            "vintage": self.vintage,
            "shown_judge_configs": shown,
        }
        labels = (("vintage", "{}"), ("model_config_hash", "{:.8}"))
        return with_labels(
            self.reader.rows(filled("scope/entries", given)), "entry", "model", labels
        )

    def has_rows(self, table: str) -> bool:
        """Return whether a table has rows on the benchmark and the revision."""
        return bool(self.reader.select(table, "count(*) as n", **self.job.key)[0]["n"])

    @cached_property
    def values(self) -> dict[str, Any]:
        """The parameters of the queries below `sql/figures/`, by name.

        Raises:
            UsageError: the benchmark has no such score.
        """
        expectations = all_expectations(self.benchmark.invariants)
        return {
            "score": score_name_of(self.benchmark, self.score),
            "label_score": self.score or self.benchmark.criteria_score.score_name,
            **self.given_members,
            "is_hard": self.is_hard,
            "vintage": self.vintage,
            "graders": [],
            "selections": [each["selection_id"] for each in self.selections],
            "own_hard_splits": [each["split"] for each in self.selections],
            "bar": self.job.settings.coverage.min,
            "main": self.main,
            "reviewed_share": (
                self.benchmark.review_reference and self.benchmark.review_reference.value
            ),
            "run": self.job.run_id,
            "living": list(self.living),
            "entries": Rows.of(self.entries, (*SAMPLING, "entry")),
            "shown_judge_configs": Rows.of(self.judge_configs, (*JUDGE_CONFIG, "judge_config")),
            "changes": Rows.of(self.changes, _CHANGE),
            "expectations": Rows(
                tuple((each.check, each.text, each.meaning) for each in expectations), 3
            ),
        }

    @cached_property
    def given_members(self) -> dict[str, Any]:
        """The data set; the requested splits, models and judges (empty: all); and all hard
        splits.
        """
        return {
            "benchmark": self.benchmark.name,
            "dataset_revision": self.revision,
            "splits": list(self.job.settings.dataset.splits),
            "hard_splits": sorted(self.benchmark.hard_splits.values()),
            "models": list(self.job.named_models or ()),
            "judges": list(self.job.named_judges or ()),
        }

    @cached_property
    def selections(self) -> tuple[Mapping[str, Any], ...]:
        """The own hard selections whose tasks all belong to the report; only these are shown."""
        return tuple(self.reader.rows(filled("scope/selections", self.given_members)))

    @cached_property
    def narrowed_to(self) -> str:
        """The splits that the report is limited to, as text; empty if it is of all tasks."""
        splits = self.job.settings.dataset.splits
        (left_out,) = (
            self.reader.rows(filled("scope/left_out", self.given_members))
            if splits
            else ({"n_tasks": 0},)
        )
        return (
            f"split{'s' if len(splits) > 1 else ''} {', '.join(splits)}"
            if left_out["n_tasks"]
            else ""
        )

    @cached_property
    def kinds(self) -> dict[str, bool]:
        """The kinds of labels that tasks or criteria have here -> whether criteria have them."""
        return {row["kind"]: row["of_criteria"] for row in self._kinds}

    @cached_property
    def annotated(self) -> dict[str, str]:
        """Kind of label -> a sentence about labels of that kind that are not the data set's."""
        return {
            row["kind"]: (
                f"The labels of {row['n_annotated']} of {row['n_tasks']} tasks come from a model "
                f"({', '.join(row['annotators'])}), because the data set gives none."
            )
            for row in self.rows("scope/annotated")
        }

    @cached_property
    def own_breakdowns(self) -> tuple[Breakdown, ...]:
        """The kinds of labels that only this benchmark declares and that occur in the data, in the
        declared order.
        """
        own = {row["kind"]: row for row in self._kinds if row["is_own"] and not row["is_category"]}
        titles = self.benchmark.own_breakdowns
        return tuple(
            Breakdown(kind, title, own[kind]["of_criteria"])
            for kind, title in titles.items()
            if kind in own
        )

    @cached_property
    def category_title(self) -> str | None:
        """The benchmark's name for the categories of criteria; None without one."""
        return next(
            (
                self.benchmark.breakdowns.get(row["kind"])
                for row in self._kinds
                if row["is_category"]
            ),
            None,
        )

    @cached_property
    def _kinds(self) -> list[dict[str, Any]]:
        return self.rows("scope/kinds")

    @cached_property
    def main(self) -> str | None:
        """The judge configuration that is shown first."""
        first = first_judge_config(self.job, self.benchmark, self.judge_configs)
        return first["judge_config"] if first else None

    def filled(self, query: str, given: Mapping[str, Any] | None = None) -> str:
        """Return a query with literals for its parameters (`filled`); `given` are further
        parameters.
        """
        steps, of_steps = self.steps
        return filled(
            query,
            {
                **self.values,
                **of_steps,
                **(given or {}),
            },
            self._columns_of,
            steps,
        )

    def query_of(self, figure: Figure, given: Mapping[str, Any] | None = None) -> str:
        """Return the query of a figure in this scope; `given` replaces the figure's parameters."""
        return self.filled(text_of(figure), {**figure.given, **(given or {})})

    def rows_of(
        self, figure: Figure, given: Mapping[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows of a figure in this scope; `given` replaces the figure's parameters."""
        if figure.compute is not None:
            return figure.compute(
                self,
                {
                    **self.values,
                    **figure.given,
                    **(given or {}),
                },
            )
        return self.reader.rows(self.query_of(figure, given))

    def rows(self, query: str, given: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a query in this scope."""
        return self.reader.rows(self.filled(query, given))

    def _columns_of(self, relation: str) -> list[str]:
        return self.reader.table(f"from {relation} limit 0")[0]


_CHANGE = (
    "model",
    "model_config_hash",
    *JUDGE_CONFIG,
    "first_vintage",
    "second_vintage",
    "split",
    "ci_low",
    "ci_high",
    "p_adjusted",
)


def with_labels(
    rows: Sequence[Mapping[str, Any]], label: str, name: str, parts: Iterable[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return rows with a label each: the name, then the parts that tell rows of the same name
    apart.
    """
    labelled = [dict(row) | {label: row[name]} for row in rows]
    for part, shape in parts:
        counts = Counter(row[label] for row in labelled)
        values = Counter((row[label], row[part]) for row in labelled)
        for row in labelled:
            # A judge's first repetition has the judge's name.
            if values[row[label], row[part]] < counts[row[label]] and (part, row[part]) != (
                "judge_trial",
                1,
            ):
                row[label] = f"{row[label]} {shape.format(str(row[part] or 'none'))}"
    taken: set[str] = set()
    for row in labelled:  # an extended label may equal another row's name
        numbered = (f"{row[label]} ({number})" for number in count(2))
        row[label] = next(
            each for each in (row[label], *islice(numbered, len(rows))) if each not in taken
        )
        taken.add(row[label])
    return labelled
