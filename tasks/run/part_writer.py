"""What sampling and judging share: whom to call, the columns that a call fills, and parts written as rows come in."""

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, Self

from tasks.config import ORIGINAL, Endpoint, Judge, Model
from tasks.llm import Ledger, Prices, Reply, Target
from tasks.rules.identity import IMPORTED
from warehouse import Warehouse

_PART_ROWS = 2_000
_PART_AGE_S = 60.0
_CONFIGURED = "configuration"


def target_of(endpoint: Endpoint) -> Target:
    """How to call a configured model."""
    price = endpoint.price
    return Target(
        name=endpoint.name,
        api_base=endpoint.api_base,
        parameters=endpoint.parameters,
        timeout_s=endpoint.timeout_s,
        fallback=endpoint.fallback if isinstance(endpoint, Model) else {},
        identity=_identity_of(endpoint),
        headers=endpoint.headers,
        is_streamed=endpoint.stream,
        prices=None if price is None else Prices(**price.model_dump(), price_table=_CONFIGURED),
    )


def model_hash(model: Model) -> str:
    """The configuration hash of a model's responses."""
    return IMPORTED if model.is_imported else target_of(model).config_hash


def _identity_of(endpoint: Endpoint) -> dict[str, Any]:
    """What makes its answers its own beside name, address and parameters; what is not set is not there."""
    tag = {"omits_think_tag": True} if endpoint.omits_think_tag else {}
    prompt = endpoint.system_prompt if isinstance(endpoint, Model) else None
    return {**tag, **({} if prompt is None else {"system_prompt": prompt})}


def judge_target(judge: Judge) -> Target:
    """How to call a judge. How its reply is shaped and in which words it is asked are part of its identity.

    A cascade's is that of its second judge, under an identity of its own: that of both judges and of its rule.
    """
    bound = {} if judge.explanation_chars is None else {"explanation_chars": judge.explanation_chars}
    structured = {} if judge.structured_output is None else {"structured_output": judge.structured_output}
    rubric = {} if judge.rubric == ORIGINAL else {"rubric": judge.rubric}
    target = target_of(judge)
    identity = {**target.identity, **bound, **structured, **rubric, **_cascade_identity(judge)}
    return replace(target, identity=identity, wants_logprobs=judge.logprobs)


def _cascade_identity(judge: Judge) -> dict[str, Any]:
    """What a cascade asks before its second judge, and when it asks that one; nothing for another judge."""
    if judge.cascade is None:
        return {}
    (first, _), when = judge.cascade.members, judge.cascade.when.rule
    conditions = {
        name: value for name, value in asdict(when).items() if value is not None and value is not False and value != ()
    }
    asked = {"first": judge_target(first).config_hash, "repetitions": when.n_repetitions(first.trials)}
    return {"cascade": {**asked, "when": conditions}}


def usage_columns(reply: Reply) -> dict[str, Any]:
    """The columns of a row that the call itself fills."""
    own = (
        "served_model", "served_fingerprint", "prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd",
        "latency_s", "attempts", "error",
    )  # fmt: skip
    prices = ("input_usd_per_mtok", "cached_usd_per_mtok", "output_usd_per_mtok", "price_table")
    return {name: getattr(reply, name) for name in own} | {name: getattr(reply.prices, name) for name in prices}


NO_CALL = usage_columns(Reply("", attempts=0))
"""The same columns of a row that no call was made for."""


class PartWriter:
    """Collects finished rows of one table and writes them as parts: when there are many, when they get old, at the end.

    The end also comes when the block is left by an interruption. When a failed row is on disk, the calls behind it are
    spent: a later try is not answered by them. What `first` has collected is always written before, so that no row is
    on disk without those that it rests on.
    """

    def __init__(
        self, warehouse: Warehouse, table_name: str, ledger: Ledger, first: "PartWriter | None" = None
    ) -> None:
        self._warehouse = warehouse
        self._table_name = table_name
        self._ledger = ledger
        self._first = first
        self._rows: list[Mapping[str, Any]] = []
        self._paid: list[tuple[str, int]] = []
        self._since_s = time.monotonic()

    def add(self, row: Mapping[str, Any], reply: Reply, *, is_failure: bool) -> None:
        """Take a finished row with the reply that it was made from."""
        self._rows.append(row)
        if is_failure:
            self._paid += reply.paid
        if len(self._rows) >= _PART_ROWS or time.monotonic() - self._since_s > _PART_AGE_S:
            self.flush()

    def flush(self) -> None:
        """Write what was collected."""
        if self._first is not None:
            self._first.flush()
        self._since_s = time.monotonic()
        self._warehouse.write(self._table_name, self._rows)
        # Only now: rows that could not be written are tried again when the block ends.
        self._rows = []
        self._ledger.mark_used(self._paid)
        self._paid = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flush()
