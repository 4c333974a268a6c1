"""Alerts on models that their providers switch off."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from tasks.alerts.findings import Alert, alert_id, retirement_alerts
from tasks.llm.request import Target
from tasks.run.run_context import Callee, Retirement
from tests.tasks.alerts.conftest import night_job

LAST_DAY = date(2027, 1, 14)
END = Retirement(
    Callee("judge", "strict", Target("openai/strict")),
    LAST_DAY,
    "openai/strict will be switched off on 2027-01-14; choose its successor",
)


def alert_before(left_days: int) -> Alert:
    """The alert of a night so many days before the last day of the judge."""
    [alert] = retirement_alerts([END], LAST_DAY - timedelta(days=left_days))
    return alert


@pytest.mark.parametrize(
    ("left_days", "announced_days"),
    [(90, 90), (31, 90), (30, 30), (8, 30), (7, 7), (1, 7), (0, 0), (-5, 0)],
)
def test_an_end_is_announced_90_30_and_7_days_before_and_on_the_day(
    left_days, announced_days
):
    facts = alert_before(left_days).facts

    assert facts == {"retires_on": "2027-01-14", "announced_days": announced_days}


def test_nights_between_two_announcements_have_the_same_alert(tmp_path):
    in_november = alert_id(
        night_job(tmp_path, "2026-11-22", "run-1"), alert_before(53)
    )
    # Its line may change with the version of the table, or a larger sample of a succession.
    the_night_after = alert_id(
        night_job(tmp_path, "2026-11-23", "run-2"),
        replace(alert_before(52), line="another line"),
    )
    in_january = alert_id(night_job(tmp_path, "2027-01-07", "run-3"), alert_before(7))

    assert in_november == the_night_after
    assert in_january != in_november


def test_the_alert_says_who_ends_when_and_what_to_do():
    alert = alert_before(53)

    assert alert.headline == "judge strict will be switched off on 2027-01-14"
    assert alert.line == f"judge strict: {END.line}"


def test_an_end_explains_no_other_alert():
    assert alert_before(53).whom == ""
