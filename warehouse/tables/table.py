"""A stored table, and the groups of columns that several tables have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import pyarrow as pa

from warehouse.columns import COLUMNS

OF_SOME_JUDGES = ("probability", "confidence", "n_in_call", "position_in_call", "piece_hash")
"""Columns that only the verdicts of some judges fill."""

DATA_SET = ("benchmark", "dataset_revision")
TASK = (*DATA_SET, "task_id")
CRITERION = (*TASK, "criterion_id", "criterion_hash")
BY_MODEL = ("vintage", "model", "model_config_hash")
BY_JUDGE = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
SERVED = ("served_model", "served_fingerprint")
"""Columns of what a provider says that it served."""
USAGE = ("prompt_tokens", "cached_tokens", "completion_tokens")
PRICES = ("input_usd_per_mtok", "cached_usd_per_mtok", "output_usd_per_mtok", "price_table")
COST_AND_ORIGIN = ("cost_usd", *PRICES, "latency_s", "attempts", "error", "run_id", "created_at")
"""Columns of what a row cost, and of how and when it was made."""
CALL = (*USAGE, *COST_AND_ORIGIN)
"""Columns of a row that a call made, with the tokens of the call."""
WRITTEN = ("status", "model", "model_config_hash", *SERVED, "template_hash", *CALL)
"""Columns of a row with a text that a model wrote."""
JUDGED = (
    "model",
    "trial",
    "vintage",
    "judge",
    "judge_config_hash",
    *SERVED,
    "template_hash",
    "grading",
    "judge_trial",
)
"""Columns that identify a judged response and its judge configuration."""
DECISION = (
    "status",
    "value",
    "explanation",
    *OF_SOME_JUDGES,
    "decided_by",
    "escalated_because",
    *CALL,
)
"""Columns of a verdict: what was decided, how, and at what cost."""


@dataclass(frozen=True)
class StoredTable:
    """A stored table: its columns, its key, and the rule for rows with the same key.

    Attributes:
        meaning: the meaning of a row.
        columns: the names of the columns in order.
        key: the names of the columns that identify a row.
        keeps: `latest` (the newer part's row is current) or `decided` (a row with a usable status
            stays; a failed one is replaced by a newer one).
        models_read: the condition on the rows that models of `sql/` read; a part without such a row
            changes no model.
        conversions: for columns whose values had another convention in an earlier version, the
            expression of the present value.
    """

    name: str
    meaning: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    keeps: Literal["latest", "decided"] = "latest"
    models_read: str = "true"
    conversions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def schema(self) -> pa.Schema:
        """The types of the columns."""
        return pa.schema([(column, COLUMNS[column].type) for column in self.columns])

    @property
    def select_list(self) -> str:
        """The list of columns for a query of stored rows, converted to the present convention."""
        values = []
        for column in self.columns:
            identifier = f'"{column}"'
            values.append(f"{self.conversions.get(column, identifier)} as {identifier}")
        return ", ".join(values)

    @cached_property
    def definition(self) -> str:
        """The full definition of the table and its columns."""
        return repr((self, [COLUMNS[column] for column in self.columns]))
