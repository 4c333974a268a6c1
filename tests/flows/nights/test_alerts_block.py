"""Alerts through blocks that are saved on a real Prefect server."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows import nightly
from tasks.alerts.sending import Delivery, deliver
from tests.builders import job_on
from tests.tasks.alerts.conftest import DRIFT, DROP, NIGHT, WAIT_S, alerts_to
from tests.tasks.alerts.servers import Hook, Reply, closed_port, serving_hook

pytestmark = pytest.mark.slow


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving_hook() as server:
        yield server


@pytest.fixture
def saved(prefect_api: str, hook: Hook) -> str:
    """The name of a block that calls the hook."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    assert prefect_api
    content = {"subject": "{{subject}}", "body": "{{body}}"}
    block = CustomWebhookNotificationBlock(name="evals", url=hook.address, json_data=content)
    block.save("evals", overwrite=True)
    return "custom-webhook/evals"


def notified(name: str) -> Delivery:
    settings = alerts_to({"prefect": name}, timeout_s=30.0)
    [delivery] = deliver(settings, [DROP, DRIFT], NIGHT, first_wait_s=WAIT_S)
    return delivery


def test_a_block_notifies_of_all_alerts_and_again_when_its_server_was_down(saved: str, hook: Hook) -> None:
    hook.plan = [Reply(503)]

    assert Delivery("prefect 1", "sent", 2, None, 2) == notified(saved)
    assert "prbench, night 2026-11-22: judge drift (1), score drop (1)" == hook.calls[1].json["subject"]
    assert all(alert.line in hook.calls[1].json["body"] for alert in (DROP, DRIFT))


def test_a_block_that_fails_for_good_is_told_without_its_address(saved: str, hook: Hook) -> None:
    hook.plan = [Reply(404)] * 3

    assert Delivery("prefect 1", "failed", 1, "the server answered 404 (Not Found)", 2) == notified(saved)


def test_a_block_that_is_redirected_is_told_and_nothing_follows(saved: str, hook: Hook) -> None:
    hook.plan = [Reply(307, headers={"Location": f"{hook.address}/elsewhere"})]

    delivery = notified(saved)

    assert ("failed", 1) == (delivery.status, delivery.attempts)
    assert "HTTP 307" in str(delivery.error)
    assert "secret" not in str(delivery.error)
    assert 1 == len(hook.calls)


def test_a_block_made_of_apprise_sends_and_follows_no_redirect(prefect_api: str, hook: Hook) -> None:
    from prefect.blocks.notifications import AppriseNotificationBlock

    class JsonWebhook(AppriseNotificationBlock):
        _block_type_name = "JSON webhook for a test"

    assert prefect_api
    url = f"{hook.address.replace('http', 'json')}?redirect=yes"
    JsonWebhook(url=url).save("evals", overwrite=True)  # type: ignore[arg-type]
    with serving_hook() as elsewhere:
        hook.plan = [Reply(), Reply(307, headers={"Location": elsewhere.address})]
        sent, redirected = (notified("json-webhook-for-a-test/evals") for _ in range(2))

        assert [] == elsewhere.calls
    assert Delivery("prefect 1", "sent", 1, None, 2) == sent
    assert DROP.line in hook.calls[0].json["message"]
    assert ("failed", 1, 2) == (redirected.status, redirected.attempts, len(hook.calls))
    assert "secret" not in str(redirected.error)


def test_a_night_whose_named_server_does_not_answer_says_what_that_means(
    prefect_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_on("sample", tmp_path / "data")
    nightly._have_a_server(job)
    assert (os.environ["PREFECT_API_URL"], capsys.readouterr().err) == (prefect_api, "")
    monkeypatch.setattr(nightly, "_NAMED_S", 0.0)
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{closed_port()}/api")
    nightly._have_a_server(job)
    assert "does not answer" in capsys.readouterr().err


def test_no_library_behind_a_block_follows_a_redirect(hook: Hook) -> None:
    import aiohttp
    import requests

    from tasks.llm.http_clients import watched
    from tasks.llm.transport import Redirected

    async def by_aiohttp() -> None:
        async with aiohttp.ClientSession() as session:
            await session.post(hook.address)

    for call in (lambda: asyncio.run(by_aiohttp()), lambda: requests.post(hook.address, timeout=30)):
        hook.plan = [Reply(307, headers={"Location": f"{hook.address}/elsewhere"})]
        with watched(), pytest.raises(Redirected):
            call()
    assert 2 == len(hook.calls)


def test_a_block_that_is_not_there_or_notifies_nobody_is_told(saved: str) -> None:
    from prefect.blocks.system import Secret

    Secret(value="a-secret-value").save("quiet", overwrite=True)

    assert "Prefect's server has no such block" == notified(f"{saved}-elsewhere").error
    assert "this block cannot send notifications" == notified("secret/quiet").error


def test_a_prefect_server_that_is_not_there_is_told(saved: str) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{closed_port()}/api"}):
        delivery = notified(saved)

    error = "Prefect's server cannot be reached, or the block is broken"
    assert Delivery("prefect 1", "failed", 3, error, 2) == delivery
