"""`omits_think_tag` changes how replies are read, and no request: stored replies are read again without a call."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tests.faults.server import Answer, FaultServer, Request, well_behaved
from tests.kit import job_on, judged, prepared, sampled
from warehouse import Warehouse


def swallows_the_tag(request: Request, number: int) -> Answer:
    """A server that sends thinking without its opening tag, for a judge in front of JSON, too."""
    answer = well_behaved(request, number)
    return replace(answer, text=f"First this.</think>\n{answer.text}")


@pytest.mark.slow
def test_replies_are_read_without_their_thinking_and_those_that_are_stored_without_a_call(tmp_path: Path) -> None:
    with FaultServer(swallows_the_tag) as server:

        def job(**of_model: Any) -> Job:
            at = {"api_base": server.api_base}
            judge = {"name": "hosted_vllm/judge", "label": "judge", "omits_think_tag": True, **at}
            models = [{"name": "hosted_vllm/a", "label": "a", **at, **of_model}]
            return prepared(job_on("sample", tmp_path, models=models, judges=[judge]).model_copy(update={"limit": 2}))

        sampled(job())
        report = judged(job())
        n_calls = len(server.book)
        sampled(job(omits_think_tag=True))
        assert (len(server.book), report.failures) == (n_calls, {})
    with Warehouse(tmp_path).reader() as reader:
        rows = reader.rows("select task_id, text, model_config_hash from responses order by task_id, len(text)")
        assert {"met", "unmet"} >= {row["status"] for row in reader.rows("select status from verdicts")}
    assert len({row["model_config_hash"] for row in rows}) == 2
    for read, as_it_came in zip(rows[::2], rows[1::2], strict=True):
        assert as_it_came["text"] == f"First this.</think>\n{read['text']}"
