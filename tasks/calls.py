"""What sampling and judging share: whom to call, a run's gateway, and parts written before too much is at risk."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import TracebackType
from typing import Any, Self

from tasks.llm.gateway import Gateway, Target
from tasks.llm.replies import Reply
from tasks.settings import Endpoint, Job, Judge, Model
from warehouse import Warehouse

_PART_ROWS = 2_000
_PART_AGE_S = 20.0


def target_of(endpoint: Endpoint) -> Target:
    """How to call a configured model."""
    return Target(
        name=endpoint.name,
        api_base=endpoint.api_base,
        parameters=endpoint.parameters,
        timeout_s=endpoint.timeout_s,
        fallback=endpoint.fallback if isinstance(endpoint, Model) else {},
    )


def judge_target(judge: Judge) -> Target:
    """How to call a judge. How its reply is shaped is part of its identity: it changes what the judge can say."""
    bound = {} if judge.explanation_chars is None else {"explanation_chars": judge.explanation_chars}
    structured = {} if judge.structured_output is None else {"structured_output": judge.structured_output}
    return replace(target_of(judge), identity={**bound, **structured})


@cache
def _gateway(run_id: str, role: str, concurrency: int, attempts: int) -> Gateway:
    return Gateway(concurrency, attempts)


def gateway_of(job: Job, role: str) -> Gateway:
    """The gateway that all batches of a run share in this process; judges and candidates have one each."""
    return _gateway(job.run_id, role, job.settings.limits.concurrency, job.settings.limits.attempts)


def usage_columns(reply: Reply) -> dict[str, Any]:
    """The columns of a row that the call itself fills."""
    names = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd", "latency_s", "attempts", "error")
    return {name: getattr(reply, name) for name in (*names, "served_model")}


class PartWriter:
    """Collects finished rows of one table and writes them as parts: when there are many, when they get old, at the end.

    The end also comes when the block is left by an interruption, so that what was paid for is kept.
    """

    def __init__(self, warehouse: Warehouse, table_name: str) -> None:
        self._warehouse = warehouse
        self._table_name = table_name
        self._rows: list[Mapping[str, Any]] = []
        self._since_s = time.monotonic()

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a finished row."""
        self._rows.append(row)
        if len(self._rows) >= _PART_ROWS or time.monotonic() - self._since_s > _PART_AGE_S:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        self._since_s = time.monotonic()
        self._warehouse.write(self._table_name, self._rows)
        # Only now: rows that could not be written are tried again when the block ends.
        self._rows = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
