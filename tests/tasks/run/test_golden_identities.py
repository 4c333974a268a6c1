"""Stored rows keep their identities: those of one small run, as they were when they were frozen.

A digest that changes means that every stored row of its kind counts as missing and is paid for
again.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import Ledger
from tests.faults.server import FaultServer
from tests.kit import job_on, judged, prepared, sampled, values_in

pytestmark = pytest.mark.usefixtures("without_scores")

ADDRESS = {"api_base": "${GOLDEN_PROVIDER}/v1"}
"""The provider's address by a variable, since its port differs each time."""
MODELS = [
    {
        "name": "hosted_vllm/plain",
        "label": "plain",
        **ADDRESS,
    },
    {
        "name": "openai/tuned",
        "label": "tuned",
        "temperature": 0.5,
        "max_tokens": 900,
        "reasoning_effort": "low",
        "headers": {"X-Team": "${GOLDEN_TEAM}"},
        "params": {"top_p": 0.9},
        "fallback": {"max_tokens": 100},
        "omits_think_tag": True,
        **ADDRESS,
    },
]
JUDGES = [
    {
        "name": "hosted_vllm/judge",
        "label": "judge",
        "max_tokens": 700,
        "trials": 2,
        **ADDRESS,
    },
    {
        "name": "openai/shaped",
        "label": "shaped",
        "structured_output": True,
        "explanation_chars": 300,
        **ADDRESS,
    },
]
COLUMNS = {
    "task_rows": "task_id, content_hash",
    "criteria": "criterion_id, content_hash",
    "responses": "response_id, conversation_id, model_config_hash",
    "verdicts": "verdict_id, criterion_hash, judge_config_hash, template_hash",
}
FROZEN = json.loads(Path(__file__).with_name("identities.json").read_text("utf-8"))
"""Benchmark -> table -> number of rows, and a digest of all their identities."""


def digest_of(values: Iterable[Any]) -> str:
    hashes = sorted(map(str, values))
    return (
        f"{len(hashes)} {hashlib.sha256('|'.join(hashes).encode()).hexdigest()[:16]}"
    )


@pytest.mark.parametrize(
    "benchmark",
    [
        "prbench",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("researchrubrics", "healthbench")
        ),
    ],
)
def test_a_run_has_the_frozen_identities(benchmark, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("GOLDEN_TEAM", "any")
    with FaultServer() as server:
        monkeypatch.setenv("GOLDEN_PROVIDER", server.api_base.removesuffix("/v1"))
        job = job_on(
            "sample",
            tmp_path,
            benchmark=benchmark,
            models=MODELS,
            judges=JUDGES,
            trials=2,
        )
        job = prepared(job.model_copy(update={"vintage": "2026-01-01", "limit": 3}))
        sampled(job)
        judged(job)
    hashes = {
        table: digest_of(values_in(job, f"select {columns} from {table}"))
        for table, columns in COLUMNS.items()
    }
    ledger = Ledger(job.warehouse / "ledger")
    keys = [key for (key,) in ledger.rows("select call_key from calls")]
    hashes["calls"] = digest_of(keys)
    ledger.close()

    assert hashes == FROZEN[benchmark]
