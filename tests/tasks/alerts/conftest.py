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
from tasks.config.job import Job
from tasks.config.settings import Alerts
from tests.kit import job_on
from tests.tasks.alerts.servers import Hook

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


FELL: dict[str, Any] = {
    "model": "beta",
    "judge": "strict",
    "judge_trial": 1,
    "split": "finance_hard",
    "score": "score",
    "first_vintage": "2026-11-21",
    "second_vintage": "2026-11-22",
    "first_mean": 0.53,
    "second_mean": 0.41,
    "difference": -0.12,
    "ci_low": -0.15,
    "ci_high": -0.09,
    "p_value": 0.0002,
    "n_tasks": 300,
    "n_wanted": 300,
}
"""A nightly model compared with its last night."""
DRIFTED: dict[str, Any] = {
    "judge": "a-judge",
    "night": "2026-11-22",
    "n_decided": 200,
    "agreement": 0.91,
    "centre": 0.98,
    "lower_limit": 0.953,
    "joint_limit": None,
    "min_agreement": None,
    "met_share": 0.535,
    "first_met_share": 0.5,
    "n_labelled": 0,
    "cause": "limit",
}
"""A row of `judge_drift`."""


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch):
    """The wait before the second attempt."""
    monkeypatch.setattr(sending, "FIRST_WAIT_S", 0.01)


def alerts_to(*receivers: dict[str, Any], **settings: Any) -> Alerts:
    """Settings with these receivers and short waits."""
    values = {
        "to": receivers,
        "attempts": 3,
        "timeout_s": 60.0,
    }
    return Alerts.model_validate(values | settings)


def night_job(
    folder: Path,
    night: str = "2026-11-22",
    run_id: str = "run-1",
    **settings: Any,
) -> Job:
    """The job of a night on a warehouse."""
    return job_on("sample", folder, run_id=run_id, **settings).model_copy(
        update={"night": night}
    )


NIGHT = night_job(Path("warehouse/data"), run_id="a-run")


@dataclass(frozen=True)
class Trust:
    """A certificate for 127.0.0.1, and the authority that signed it."""

    server: ssl.SSLContext
    authority: Path


@pytest.fixture(scope="session")
def trust(tmp_path_factory) -> Trust:
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
