"""Adoption: results that were stored without their model's address get the identity that has it,
without a call.
"""

import pytest

from tasks.config.job import Job
from tasks.maintain.adoption import adopt
from tasks.rules.errors import UsageError
from tasks.run.unadopted import lines_on_unadopted
from tests.faults.server import FaultServer
from tests.kit import (
    Row,
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


def missing_calls(job: Job, server: FaultServer) -> int:
    """Do the missing work, and return the number of calls that it took."""
    n_before = len(server.book)
    sampled(job)
    judged(job)
    return len(server.book) - n_before


def contents(job: Job) -> list[Row]:
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


def test_adopted_results_are_used_without_a_call(job, server):
    earlier_contents = contents(job)

    report = adopt(job, server.api_base)

    assert contents(job) == earlier_contents
    assert report.rows == len(earlier_contents)
    assert missing_calls(job, server) == 0
    assert lines_on_unadopted(job) == []


def test_one_line_says_how_many_results_are_not_used(job, server):
    n_responses = len(rows_in(job, "from responses"))
    n_verdicts = len(rows_in(job, "from verdicts"))

    [line] = lines_on_unadopted(job)

    assert f"{n_responses} responses and {n_verdicts} verdicts" in line
    assert f"prbench adopt --api-base {server.api_base}" in line
    assert "OPENAI_BASE_URL" in line


def test_results_that_were_made_again_with_the_address_are_not_counted(job, server):
    assert missing_calls(job, server) > 0

    assert lines_on_unadopted(job) == []


def test_adopting_again_changes_nothing(job, server):
    adopt(job, server.api_base)
    adopted = rows_in(job, "from verdicts order by verdict_id")

    again = adopt(job, server.api_base)

    assert again.rows == 0
    assert rows_in(job, "from verdicts order by verdict_id") == adopted


def test_adopted_replies_serve_rows_that_were_never_written(job, server):
    """A run that was killed had replies in the ledger, and no rows."""
    for part in (job.warehouse / "parts").glob("verdicts/*.parquet"):
        part.unlink()
    (job.warehouse / "parts/list.json").unlink()
    (job.warehouse / "prbench.duckdb").unlink()

    adopt(job, server.api_base)

    assert missing_calls(job, server) == 0


@pytest.mark.parametrize("n_rewritten", [0, 1, 2])
def test_an_adoption_that_was_killed_is_finished_by_the_next_one(
    n_rewritten,
    job,
    server,
    monkeypatch,
):
    earlier_contents = contents(job)
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
            adopt(job, server.api_base)
    adopt(job, server.api_base)

    assert contents(job) == earlier_contents
    assert missing_calls(job, server) == 0


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


def test_what_another_server_gave_is_not_adopted(job, server, monkeypatch):
    adopt(job, server.api_base)
    with FaultServer() as rival_server:
        monkeypatch.setenv("OPENAI_BASE_URL", rival_server.api_base)

        assert missing_calls(job, rival_server) > 0


def test_without_the_variable_adopted_results_are_not_used(
    job,
    server,
    monkeypatch,
    tmp_path,
):
    adopt(job, server.api_base)
    monkeypatch.delenv("OPENAI_BASE_URL")
    [model] = job.settings.models
    address = server.api_base.replace("127.0.0.1", "localhost")
    elsewhere = copied(job, tmp_path / "copy").with_settings(
        models=(model.model_copy(update={"api_base": address}),),
        judges=(),
    )

    assert missing_calls(elsewhere, server) == 2


def test_an_address_that_the_environment_does_not_give_is_refused(job, server):
    address = f"{server.api_base} .from OPENAI_BASE_URL"
    with pytest.raises(UsageError, match=f"known: {address}.*; name one"):
        adopt(job, "http://elsewhere/v1")
