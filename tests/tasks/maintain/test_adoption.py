"""Adoption: results that were stored without their model's address get the identity that has it,
without a call.
"""

from typing import Any

import pytest

from tasks.config.job import Job
from tasks.maintain.adoption import adopt
from tasks.rules.errors import UsageError
from tasks.run.unadopted import lines_on_unadopted
from tests.faults.server import FaultServer
from tests.kit import (
    copied,
    endpoint,
    few_published,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
)
from warehouse import compaction

pytestmark = pytest.mark.usefixtures("without_scores")

MODELS = [{"name": "openai/m", "label": "m"}]
JUDGES = [
    {"name": "openai/judge", "label": "judge"},
    {
        "name": "openai/group",
        "label": "group",
        "criteria_per_call": 3,
    },
]


@pytest.fixture
def server(provider, without_addresses, monkeypatch) -> FaultServer:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.api_base)
    return provider


@pytest.fixture(scope="module")
def shared(provider: FaultServer, tmp_path_factory) -> Job:
    """A job whose work was done when the environment's address was no part of an identity."""
    folder = tmp_path_factory.mktemp("adoption") / "data"
    job = prepared(job_on("sample", folder, models=MODELS, judges=JUDGES))
    job = job.model_copy(update={"limit": 2})
    with pytest.MonkeyPatch.context() as earlier, few_published():
        earlier.setenv("OPENAI_BASE_URL", provider.api_base)
        earlier.setenv("OPENAI_API_KEY", "none")
        earlier.setattr("tasks.run.judge_configs.address_of", lambda *_: None)
        sampled(job)
        judged(job)
    return job


@pytest.fixture
def old_job(job, server) -> Job:
    return job


def missing_calls(job: Job, server: FaultServer) -> int:
    """Do the missing work, and return the number of calls that it took."""
    n_before = len(server.book)
    sampled(job)
    judged(job)
    return len(server.book) - n_before


def contents(job: Job) -> list[dict[str, Any]]:
    """What responses and verdicts say, apart from their identities."""
    responses = rows_in(job, "from responses order by task_id")
    verdicts = rows_in(job, "from verdicts order by task_id, criterion_id, judge")
    identities = {
        "response_id",
        "verdict_id",
        "model_config_hash",
        "judge_config_hash",
    }
    return [
        {name: row[name] for name in row.keys() - identities}
        for row in (*responses, *verdicts)
    ]


def test_adopted_results_are_used_without_a_call(old_job, server):
    earlier_contents = contents(old_job)

    report = adopt(old_job, server.api_base)

    assert contents(old_job) == earlier_contents
    assert report.rows == len(earlier_contents)
    assert missing_calls(old_job, server) == 0
    assert lines_on_unadopted(old_job) == []


def test_one_line_says_how_many_results_are_not_used(old_job, server):
    n_responses = len(rows_in(old_job, "from responses"))
    n_verdicts = len(rows_in(old_job, "from verdicts"))

    [line] = lines_on_unadopted(old_job)

    assert f"{n_responses} responses and {n_verdicts} verdicts" in line
    assert f"prbench adopt --api-base {server.api_base}" in line
    assert "OPENAI_BASE_URL" in line


def test_results_that_were_made_again_with_the_address_are_not_counted(
    old_job, server
):
    assert missing_calls(old_job, server) > 0

    assert lines_on_unadopted(old_job) == []


def test_adopting_again_changes_nothing(old_job, server):
    adopt(old_job, server.api_base)
    adopted = rows_in(old_job, "from verdicts order by verdict_id")

    again = adopt(old_job, server.api_base)

    assert again.rows == 0
    assert rows_in(old_job, "from verdicts order by verdict_id") == adopted


def test_adopted_replies_serve_rows_that_were_never_written(old_job, server):
    """A run that was killed had replies in the ledger, and no rows."""
    for part in (old_job.warehouse / "parts").glob("verdicts/*.parquet"):
        part.unlink()
    (old_job.warehouse / "parts/list.json").unlink()
    (old_job.warehouse / "prbench.duckdb").unlink()

    adopt(old_job, server.api_base)

    assert missing_calls(old_job, server) == 0


@pytest.mark.parametrize("n_rewritten", [0, 1, 2])
def test_an_adoption_that_was_killed_is_finished_by_the_next_one(
    n_rewritten,
    old_job,
    server,
    monkeypatch,
):
    earlier_contents = contents(old_job)
    replaced = []
    replace = compaction.write_part

    def killed_after_some(*arguments):
        replaced.append(arguments)
        if len(replaced) > n_rewritten:
            raise KeyboardInterrupt
        return replace(*arguments)

    with monkeypatch.context() as killing:
        killing.setattr(compaction, "write_part", killed_after_some)
        with pytest.raises(KeyboardInterrupt):
            adopt(old_job, server.api_base)
    adopt(old_job, server.api_base)

    assert contents(old_job) == earlier_contents
    assert missing_calls(old_job, server) == 0


def test_a_judge_is_adopted_on_responses_that_keep_their_identity(
    tmp_path,
    server,
    monkeypatch,
):
    model = endpoint("m", server.api_base)
    job = job_on(
        "sample",
        tmp_path / "data",
        models=[model],
        judges=JUDGES,
    )
    job = prepared(job).model_copy(update={"limit": 1})
    sampled(job)
    with monkeypatch.context() as earlier:
        earlier.setattr("tasks.run.judge_configs.address_of", lambda *_: None)
        judged(job)
    responses = rows_in(job, "from responses order by response_id")

    adopt(job, server.api_base)

    assert rows_in(job, "from responses order by response_id") == responses
    assert missing_calls(job, server) == 0


def test_what_another_server_gave_is_not_adopted(old_job, server, monkeypatch):
    adopt(old_job, server.api_base)
    with FaultServer() as rival_server:
        monkeypatch.setenv("OPENAI_BASE_URL", rival_server.api_base)

        assert missing_calls(old_job, rival_server) > 0


def test_without_the_variable_adopted_results_are_not_used(
    old_job,
    server,
    monkeypatch,
    tmp_path,
):
    adopt(old_job, server.api_base)
    monkeypatch.delenv("OPENAI_BASE_URL")
    [model] = old_job.settings.models
    address = server.api_base.replace("127.0.0.1", "localhost")
    elsewhere = copied(old_job, tmp_path / "copy").with_settings(
        models=(model.model_copy(update={"api_base": address}),),
        judges=(),
    )

    assert missing_calls(elsewhere, server) == 2


def test_an_address_that_the_environment_does_not_give_is_refused(old_job, server):
    address = f"{server.api_base} .from OPENAI_BASE_URL"
    with pytest.raises(UsageError, match=f"known: {address}.*; name one"):
        adopt(old_job, "http://elsewhere/v1")
