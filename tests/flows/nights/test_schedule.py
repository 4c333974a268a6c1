"""Which night it is, and when calling has to stop."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.run.nightly_schedule import STOP_TIME, night_of, stop_time
from tasks.config.operations import Nightly
from tasks.rules.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
AT_ONE, LATE = Nightly(cron="0 1 * * *"), Nightly(cron="0 23 * * *", timezone="Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("nightly", "now", "night"),
    [
        (AT_ONE, "2026-11-22T01:00:00", "2026-11-22"),
        (AT_ONE, "2026-11-22T00:59:59", "2026-11-21"),
        (AT_ONE, "2026-11-22T17:00:00", "2026-11-22"),
        (LATE, "2026-11-21T22:00:00", "2026-11-21"),  # 23:00 in Berlin
        (LATE, "2026-11-22T03:00:00", "2026-11-21"),  # begun again after midnight, the same night
        (Nightly(cron="30 2 * * 1-5"), "2026-11-22T12:00:00", "2026-11-20"),  # a Sunday: Friday's
        (Nightly(cron="0 */6 * * *"), "2026-11-22T13:00:00", "2026-11-22T12:00"),
        (Nightly(cron="* * * * *"), "2026-11-22T13:00:30", "2026-11-22T13:00"),
        (Nightly(cron="30 2 * * *", timezone="Europe/Berlin"), "2026-03-29T12:00:00", "2026-03-29"),  # no 02:30
    ],
)
def test_a_night_is_the_day_at_which_the_schedule_last_fired(nightly: Nightly, now: str, night: str) -> None:
    assert night_of(nightly, utc(now)) == night


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)), st.integers(0, 23), st.integers(0, 59))
def test_a_night_lasts_until_the_next_one_begins(moment: datetime, hour: int, minute: int) -> None:
    nightly = Nightly(cron=f"{minute} {hour} * * *")
    begun = moment.replace(hour=hour, minute=minute, second=0, microsecond=0, tzinfo=UTC)
    if begun > moment.replace(tzinfo=UTC):
        begun -= timedelta(days=1)
    assert night_of(nightly, moment.replace(tzinfo=UTC)) == f"{begun:%Y-%m-%d}"


def test_a_time_of_day_is_the_next_one() -> None:
    now = datetime(2026, 11, 22, 1, 0, tzinfo=BERLIN)
    assert stop_time("06:30", now) == datetime(2026, 11, 22, 6, 30, tzinfo=BERLIN)
    assert stop_time("0:30", now) == datetime(2026, 11, 23, 0, 30, tzinfo=BERLIN)
    assert stop_time("2026-11-23T06:30", now) == datetime(2026, 11, 23, 6, 30, tzinfo=BERLIN)
    assert stop_time("2026-11-23T06:30+00:00", now) == datetime(2026, 11, 23, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["soon", "25:00", "06:77", "2026-13-01", "2020-01-01T00:00", ""])
def test_what_is_no_time_to_come_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--stop-at"):
        stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    [
        "06:30", "6:30", "2026-11-23", "2026-11-23T06:30", "2026-11-23 06:30", "2026-11-23T06:30:15", "20261123T0630",
        "2026-11-23T06:30:15.5", "2026-11-23 06:30:15,250+01:00", "2026-11-23T06:30Z", "2026-W48-1T06:30", "2026W481",
    ],
)  # fmt: skip
def test_a_form_of_prefect_refuses_no_stop_time_that_the_command_takes(text: str) -> None:
    assert stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=UTC)).year == 2026
    assert re.search(STOP_TIME, text)


@pytest.mark.parametrize("text", ["", "soon", "7 pm", "06:30:00", "6.30", "tomorrow 06:30", "2026"])
def test_a_form_of_prefect_refuses_what_is_no_stop_time(text: str) -> None:
    assert not re.search(STOP_TIME, text)
    with pytest.raises(UsageError, match="--stop-at"):
        stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=UTC))


@pytest.mark.parametrize("cron", ["", "every night", "0 1 * *", "61 1 * * *", "0 0 1 * * *", "0 1 31 2 *"])
def test_a_cron_line_that_names_no_time_is_refused(cron: str) -> None:
    with pytest.raises(ValueError, match=r"cron|five fields"):
        Nightly(cron=cron)


def test_an_unknown_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="Europe/Berlin"):
        Nightly(timezone="Mars/Olympus")
