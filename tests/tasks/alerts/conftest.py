"""Receivers of alerts, certificates, and alerts to send."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from tasks.alerts import sending
from tasks.alerts.findings import Alert
from tasks.config.settings import Alerts
from tests.kit import job_on
from tests.tasks.alerts.servers import Hook

NIGHT = job_on("sample", Path("warehouse/data")).model_copy(update={"night": "2026-11-22"})
DROP = Alert(
    "score_drop",
    "a-model",
    "a-model fell by 0.043 on finance",
    {
        "difference": -0.043,
        "split": "finance",
        "first_vintage": "2026-11-21",
        "second_vintage": "2026-11-22",
    },
    whom="a-model",
    happened="fell on finance: .512 to .469",
)
DRIFT = Alert(
    "judge_drift",
    "a-judge",
    "a-judge decided 80.0% as the first time",
    {"agreement": 0.8},
    whom="judge a-judge",
    happened="drifted",
)


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait before the second attempt."""
    monkeypatch.setattr(sending, "FIRST_WAIT_S", 0.01)


def alerts_to(*receivers: dict[str, Any], **settings: Any) -> Alerts:
    """Settings with these receivers and short waits."""
    return Alerts.model_validate(
        {
            "to": receivers,
            "attempts": 3,
            "timeout_s": 60.0,
            **settings,
        }
    )


@dataclass(frozen=True)
class Trust:
    """A certificate for 127.0.0.1, and the authority that signed it."""

    server: ssl.SSLContext
    authority: Path


@pytest.fixture(scope="session")
def trust(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    path = tmp_path_factory.mktemp("authority") / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return Trust(context, path)


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A webhook's receiver."""
    with Hook() as server:
        yield server
