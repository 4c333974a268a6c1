"""What is stored stays known: the identities of one small run, as they were when they were frozen.

A digest that changes means that every stored row of its kind counts as missing and is paid for again.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import Ledger
from tests.faults.server import FaultServer
from tests.kit import job_on, judged, prepared, sampled
from warehouse import Warehouse

AT = {"api_base": "${GOLDEN_PROVIDER}/v1"}
"""Where the provider is by its name in the configuration; a port is not the same twice."""
MODELS = [
    {"name": "hosted_vllm/plain", "label": "plain", **AT},
    {
        "name": "openai/tuned", "label": "tuned", "temperature": 0.5, "max_tokens": 900, "reasoning_effort": "low",
        "headers": {"X-Team": "${GOLDEN_TEAM}"}, "params": {"top_p": 0.9}, "fallback": {"max_tokens": 100},
        "omits_think_tag": True, **AT,
    },
]  # fmt: skip
JUDGES = [
    {"name": "hosted_vllm/judge", "label": "judge", "max_tokens": 700, "trials": 2, **AT},
    {"name": "openai/shaped", "label": "shaped", "structured_output": True, "explanation_chars": 300, **AT},
]
COLUMNS = {
    "task_rows": ("task_id", "content_hash"),
    "criteria": ("criterion_id", "content_hash"),
    "responses": ("response_id", "conversation_id", "model_config_hash"),
    "verdicts": ("verdict_id", "criterion_hash", "judge_config_hash", "template_hash"),
}
FROZEN = {
    "prbench": {
        "task_rows.task_id": "8 e9ee173fc0b0ae3e",
        "task_rows.content_hash": "8 a92f13fabd4ea27b",
        "criteria.criterion_id": "98 0600e24c49509589",
        "criteria.content_hash": "98 e2964b20810f4910",
        "responses.response_id": "12 23836f51e9369d36",
        "responses.conversation_id": "12 2160f79cc585ca96",
        "responses.model_config_hash": "12 659450b0f7514f96",
        "verdicts.verdict_id": "444 8d6fd42fa5def5ba",
        "verdicts.criterion_hash": "444 564c1a73e592c851",
        "verdicts.judge_config_hash": "444 f4052ff5d3e0083d",
        "verdicts.template_hash": "444 2a69a2e23bfcc613",
        "call_key": "234 817d4490b5d0b657",
    },
    "researchrubrics": {
        "task_rows.task_id": "2 bc26a30bf1fced4b",
        "task_rows.content_hash": "2 6e238f5f747312ec",
        "criteria.criterion_id": "40 6ae66692bbf33af4",
        "criteria.content_hash": "40 5a48690bae60d8e2",
        "responses.response_id": "8 7d29c9401ee91656",
        "responses.conversation_id": "8 99b04bfd97b4283d",
        "responses.model_config_hash": "8 1c35c39af05714be",
        "verdicts.verdict_id": "480 71f6f5582db24959",
        "verdicts.criterion_hash": "480 51fa1b0a9176aaff",
        "verdicts.judge_config_hash": "480 32047668576aa9f5",
        "verdicts.template_hash": "480 6d3122cffcf13fc2",
        "call_key": "248 55bb7db689e58025",
    },
    "healthbench": {
        "task_rows.task_id": "3 956f4c4e9293d677",
        "task_rows.content_hash": "3 ee15e04fc8014603",
        "criteria.criterion_id": "19 9a72cb2f2b385262",
        "criteria.content_hash": "19 0c4d13b278a0c683",
        "responses.response_id": "12 d479b2db4896cd84",
        "responses.conversation_id": "12 fee20e1b0ac78c31",
        "responses.model_config_hash": "12 659450b0f7514f96",
        "verdicts.verdict_id": "228 e217d59a745fbb1d",
        "verdicts.criterion_hash": "228 c67b62c76a290efd",
        "verdicts.judge_config_hash": "228 c10466c333f9f8e9",
        "verdicts.template_hash": "228 41317e121c21bb78",
        "call_key": "126 d538c81c788a7256",
    },
}
"""Benchmark -> table and column -> how many values, and a digest of all of them."""


def digest_of(values: Iterable[Any]) -> str:
    found = sorted(str(value) for value in values)
    return f"{len(found)} {hashlib.sha256('|'.join(found).encode()).hexdigest()[:16]}"


@pytest.mark.parametrize(
    "benchmark",
    ["prbench", *(pytest.param(name, marks=pytest.mark.slow) for name in ("researchrubrics", "healthbench"))],
)
def test_a_run_has_the_frozen_identities(benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("GOLDEN_TEAM", "any")
    with FaultServer() as server:
        monkeypatch.setenv("GOLDEN_PROVIDER", server.api_base.removesuffix("/v1"))
        job = job_on("sample", tmp_path, benchmark=benchmark, models=MODELS, judges=JUDGES, trials=2)
        job = prepared(job.model_copy(update={"vintage": "2026-01-01", "limit": 3}))
        sampled(job)
        judged(job)
    with Warehouse(job.warehouse).reader() as reader:
        found = {
            f"{table}.{column}": digest_of(row[column] for row in reader.rows(f"from {table}"))
            for table, columns in COLUMNS.items()
            for column in columns
        }
    ledger = Ledger(job.warehouse / "ledger")
    found["call_key"] = digest_of(key for (key,) in ledger.rows("select call_key from calls"))
    ledger.close()
    assert found == FROZEN[benchmark]
