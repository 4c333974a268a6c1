"""Stages that show a task's conversation to a model, before the conversation is assembled."""

import asyncio

import pytest

from tasks.judge.rubric_variants import derive
from tasks.rules.errors import PipelineError
from tasks.rules.identity import IMPORTED
from tests.kit import (
    admitted,
    criterion,
    endpoint,
    job_on,
    judged,
    one_line,
    response,
    sampled,
    write_jsonl,
    written,
)

pytestmark = pytest.mark.usefixtures("without_scores")
ADDRESS = "http://localhost/v1"


def derived(job):
    asyncio.run(derive(job))


@pytest.mark.parametrize(
    ("stage", "rubric"),
    [(sampled, "original"), (derived, "augmented"), (judged, "original")],
)
def test_a_stage_without_assembled_conversations_names_the_command_that_builds_them(
    tmp_path, stage, rubric
):
    job = job_on(
        write_jsonl(tmp_path / "data.jsonl", [{"not": "read"}]),
        tmp_path / "warehouse",
        models=[endpoint("alpha", ADDRESS)],
        judges=[endpoint("judge", ADDRESS, rubric=rubric)],
        rubric_writer=endpoint("writer", ADDRESS),
    )
    imported = response("t0", "alpha", model_config_hash=IMPORTED)
    rows = {
        **admitted(["t0", "t1"], split="data", n_criteria=1),
        "criteria": [criterion("t0", 0, 5.0)],
        "responses": [imported],
    }
    written(job.warehouse, rows, job.data.revision).publish()

    with pytest.raises(PipelineError, match=one_line("run `prbench assemble` first")):
        stage(job)
