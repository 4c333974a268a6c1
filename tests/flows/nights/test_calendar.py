"""The calendar of nights in every time zone, as Prefect, cron and systemd read it."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prefect.server.schemas.schedules import CronSchedule

from flows.run.nights import end_of, is_over, night_of, stop_time
from flows.serving import schedule_of
from tasks.config.settings import Nightly

FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
THREE_YEARS_D = 1096
DAY = timedelta(days=1)
# Where a machine has a zone `localtime`, Prefect does not know it.
ZONES = sorted(available_timezones() - {"localtime"})


@cache
def changes(zone_name: str) -> tuple[datetime, ...]:
    """The noons in UTC before a change of a zone's clocks, in three years."""
    zone = ZoneInfo(zone_name)
    noons = [FIRST_DAY + number * DAY for number in range(THREE_YEARS_D)]
    offsets = [noon.astimezone(zone).utcoffset() for noon in noons]
    pairs = zip(noons, pairwise(offsets), strict=False)
    return tuple(
        noon for noon, (offset, next_offset) in pairs if offset != next_offset
    )


@cache
def unlike_zones() -> tuple[str, ...]:
    """One zone for each distinct history of offsets in three years, near their changes."""
    names = {}
    for name in ZONES:
        zone = ZoneInfo(name)
        moments = [FIRST_DAY, *(noon + DAY for noon in changes(name))]
        course = tuple(
            (moment, moment.astimezone(zone).utcoffset()) for moment in moments
        )
        names[course] = name
    return tuple(names.values())


def fired(nightly: Nightly, start: datetime, n_nights: int) -> list[datetime]:
    """The times at which Prefect's server fires the schedule that is registered for these
    nights.
    """
    schedule = schedule_of(nightly)
    cron = CronSchedule(
        cron=schedule.cron,
        timezone=schedule.timezone,
        day_or=schedule.day_or,
    )
    times = asyncio.run(cron.get_dates(n_nights, start))
    return [datetime.fromtimestamp(moment.timestamp(), UTC) for moment in times]


def test_a_night_has_the_date_of_its_time_in_every_zone_and_in_both_folds():
    for zone_name in unlike_zones():
        nightly = Nightly(timezone=zone_name)
        zone = ZoneInfo(zone_name)
        for noon in changes(zone_name):
            for number in (0, 1):
                begin = (noon + number * DAY).replace(tzinfo=None, hour=1)
                readings = [begin.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]

                labels = {night_of(nightly, reading) for reading in readings}

                assert labels == {f"{begin:%Y-%m-%d}"}, zone_name


minutes = st.integers(0, 59)
# Clocks change at night, so most of these times are near a change.
hours = st.sampled_from([0, 1, 2, 3, 4, 12, 22, 23])
days = st.sampled_from(
    ["* * *", "* * 1-5", "*/2 * *", "*/2 * 1", "1,15 * *", "1-7 * 0", "* * sun"]
)
zones = st.sampled_from(ZONES)


@st.composite
def nights(draw: st.DrawFn) -> tuple[Nightly, datetime]:
    """A schedule with one time a day, and a moment two days before a change of its clocks, if there
    is any.
    """
    # Most of the zones are those whose clocks change.
    zone_name = draw(zones.filter(changes) | zones)
    start = draw(st.sampled_from(changes(zone_name) or (FIRST_DAY,))) - 2 * DAY
    schedule = Nightly(
        cron=f"{draw(minutes)} {draw(hours)} {draw(days)}",
        timezone=zone_name,
        stop_at=f"{draw(hours):02}:{draw(minutes):02}",
    )
    return schedule, start


@settings(max_examples=200)
@given(nights())
def test_each_time_of_prefects_schedule_is_a_night_of_its_own(night):
    nightly, start = night

    labels = [night_of(nightly, moment) for moment in fired(nightly, start, 6)]

    assert labels == sorted(set(labels))


@given(nights(), st.timedeltas(-timedelta(seconds=9), timedelta(hours=30)))
def test_the_latest_night_is_the_one_that_prefect_fired_last(night, late):
    nightly, start = night
    times = fired(nightly, start, 6)
    moment = times[1] + late
    latest = max(begin for begin in times if begin <= moment + timedelta(seconds=10))

    assert night_of(nightly, moment) == night_of(nightly, latest)


@given(nights(), st.floats(-9, 0) | st.floats(0, 1e5))
def test_a_night_that_its_scheduler_starts_early_or_late_is_that_night_until_the_next_one(
    night,
    late_s,
):
    nightly, start = night
    times = fired(nightly, start, 6)
    started_at = times[1] + timedelta(seconds=late_s)
    has_next_begun = times[2] - started_at <= timedelta(seconds=10)

    assert is_over(nightly, times[1], started_at) == has_next_begun
    # cron passes no scheduled time, so `night_of` has to find the night from the start
    # alone.
    if not has_next_begun:
        assert night_of(nightly, started_at) == night_of(nightly, times[1])


@given(nights(), st.floats(-9, 0))
def test_a_night_that_begins_within_seconds_before_its_time_has_not_passed_its_stop(
    night, early_s
):
    nightly, start = night
    moment = fired(nightly, start, 3)[1]

    end = end_of(nightly, moment + timedelta(seconds=early_s))

    assert end is not None
    assert end.astimezone(UTC) > moment


@given(nights())
def test_a_night_stops_after_it_began_when_the_clock_shows_its_stop_time(night):
    nightly, start = night
    zone = ZoneInfo(nightly.timezone)
    for moment in fired(nightly, start, 6):
        end = end_of(nightly, moment)

        assert end is not None
        # A day, and a change of the clocks.
        assert moment < end.astimezone(UTC) <= moment + timedelta(hours=27)
        # The clock does show that time: it is in no gap.
        assert end.utcoffset() == end.astimezone(UTC).astimezone(zone).utcoffset()
        stop_clock = datetime.strptime(nightly.stop_at, "%H:%M").time()
        clock = datetime.combine(end.date(), stop_clock)
        shown_clock = clock.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
        is_skipped = clock != shown_clock.replace(tzinfo=None)
        if not is_skipped:
            assert f"{end:%H:%M}" == nightly.stop_at


@pytest.mark.parametrize(
    ("cron", "timezone", "moment", "night"),
    [
        # The time is skipped, so Prefect fires an hour before the gap.
        ("0 1 * * *", "Europe/London", "2026-03-29T00:00Z", "2026-03-29"),
        ("0 1 * * *", "Europe/London", "2026-03-28T23:59:55Z", "2026-03-29"),
        ("0 1 * * *", "Europe/London", "2026-03-28T23:59Z", "2026-03-28"),
        ("0 1 * * *", "Europe/London", "2026-03-29T01:00Z", "2026-03-29"),
        ("0 0 * * *", "America/Santiago", "2026-09-06T03:00Z", "2026-09-06"),
        ("30 0 * * *", "Africa/Cairo", "2026-04-23T21:30Z", "2026-04-24"),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:15Z", "2026-10-04"),
        # The time comes twice.
        ("30 1 * * *", "Europe/London", "2026-10-25T00:30Z", "2026-10-25"),
        ("30 1 * * *", "Europe/London", "2026-10-25T01:10Z", "2026-10-25"),
        ("30 1 * * *", "Europe/London", "2026-10-25T01:30Z", "2026-10-25"),
        # The day is skipped.
        ("0 1 * * *", "Pacific/Apia", "2011-12-29T11:00Z", "2011-12-29"),
        ("0 1 * * *", "Pacific/Apia", "2011-12-30T10:59Z", "2011-12-29"),
        ("0 1 * * *", "Pacific/Apia", "2011-12-30T11:00Z", "2011-12-31"),
        ("0 1 * * *", "Pacific/Kiritimati", "2026-11-22T11:00Z", "2026-11-23"),
        # Several nights on a day.
        ("30 1,13 * * *", "Europe/London", "2026-03-29T00:30Z", "2026-03-29T01:30"),
        ("30 * * * *", "Europe/London", "2026-03-29T00:30Z", "2026-03-29T00:30"),
        ("30 * * * *", "Europe/London", "2026-10-25T01:40Z", "2026-10-25T01:30"),
    ],
)
def test_a_night_near_a_change_of_the_clocks(cron, timezone, moment, night):
    nightly = Nightly(cron=cron, timezone=timezone)

    assert night_of(nightly, datetime.fromisoformat(moment)) == night


@pytest.mark.parametrize(
    ("cron", "stop_at", "moment", "end"),
    [
        ("0 1 * * *", "07:00", "2026-03-29T00:00Z", "2026-03-29T06:00Z"),
        ("0 1 * * *", "07:00", "2026-03-29T09:00Z", "2026-03-29T06:00Z"),
        ("0 1 * * *", "07:00", "2026-10-25T00:00Z", "2026-10-25T07:00Z"),
        ("0 23 * * *", "01:30", "2026-03-28T23:00Z", "2026-03-29T01:30Z"),
        ("0 23 * * *", "01:30", "2026-10-24T22:00Z", "2026-10-25T00:30Z"),
        ("0 1 * * *", "01:00", "2026-03-28T01:00Z", "2026-03-29T01:00Z"),
    ],
)
def test_a_stop_time_near_a_change_of_the_clocks(cron, stop_at, moment, end):
    nightly = Nightly(
        cron=cron,
        timezone="Europe/London",
        stop_at=stop_at,
    )

    stop = end_of(nightly, datetime.fromisoformat(moment))

    assert stop is not None
    assert stop.astimezone(UTC) == datetime.fromisoformat(end)


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        ("2026-03-28T23:00Z", "2026-03-29T05:30Z"),
        ("2026-10-24T22:00Z", "2026-10-25T06:30Z"),
    ],
)
def test_a_given_stop_time_is_by_this_machines_clock_of_that_day(
    moment,
    end,
    monkeypatch,
):
    monkeypatch.setenv("TZ", "Europe/London")
    time.tzset()
    clock = datetime.fromisoformat(moment).astimezone().replace(tzinfo=None)

    stop = stop_time("06:30", clock)

    monkeypatch.undo()
    time.tzset()
    assert stop == datetime.fromisoformat(end)


def test_a_stop_time_that_comes_twice_is_the_next_of_them():
    moment = datetime.fromisoformat("2026-10-25T01:20Z")
    london = ZoneInfo("Europe/London")

    stop = stop_time("01:30", moment.astimezone(london))

    assert stop.astimezone(UTC) == datetime.fromisoformat("2026-10-25T01:30Z")
