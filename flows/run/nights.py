"""The calendar of nights: when the schedule fires, the label of each night, and when calls end.

Twice a year clocks skip a time or show it twice, and schedulers differ: for a skipped time Prefect
fires before the gap or after it, cron right after it. So a night begins at the earliest moment that
its time can mean, and lasts until the next one begins.
"""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim

from tasks.config.settings import Nightly
from tasks.rules.errors import UsageError

STOP_TIME = r"^(\d{1,2}:\d{2}|\d{4}-?[0-9W].+)$"
"""Pattern of every text that `stop_time` accepts; Prefect's forms check it."""
NIGHT = r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$"
"""Pattern of a night's label: a date, with a time if the schedule has several nights on a day."""
_EARLY = timedelta(seconds=10)
"""A night that a scheduler starts at most this early is that night, not the one before."""
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)


def refuse_invalid_night(label: str) -> None:
    """Refuse an invalid label of a night.

    Raises:
        UsageError: the label is not a date, with or without a time.
    """
    try:
        datetime.fromisoformat(label)
        is_night = re.search(NIGHT, label) is not None
    except ValueError:
        is_night = False
    if not is_night:
        raise UsageError(f"--night {label}: is not a date; write 2026-11-22")


def night_of(nightly: Nightly, moment: datetime) -> str:
    """Return the label of the night at a moment.

    It is the day of the schedule's last time, so a night that is restarted after midnight stays the
    same; with the time if the schedule has several on that day.
    """
    begin = begin_of(nightly, moment)
    midnight = datetime.combine(begin.date(), time())
    times = CronSim(nightly.cron, midnight - _MINUTE)
    next(times)
    has_several = next(times).date() == begin.date()
    return f"{begin:%Y-%m-%dT%H:%M}" if has_several else f"{begin:%Y-%m-%d}"


def begin_of(nightly: Nightly, moment: datetime) -> datetime:
    """Return the schedule's last time at a moment, as its clock shows it, without a zone."""
    zone = ZoneInfo(nightly.timezone)
    # Prefect's times are of a class of their own, in which a time without a zone does not exist.
    latest = datetime.fromtimestamp(moment.timestamp(), UTC) + _EARLY
    begins = []
    # Near a change, the clock of the day before or after may give a later time that has begun
    # already.
    for day in (latest, latest - _DAY, latest + _DAY):
        clock = latest.replace(tzinfo=None) + (day.astimezone(zone).utcoffset() or timedelta())
        # The search excludes the minute that it starts from.
        next_minute = clock.replace(second=0, microsecond=0) + _MINUTE
        begin = next(CronSim(nightly.cron, next_minute, reverse=True))
        if _first_moment(begin, zone) <= latest:
            begins.append(begin)
    # Where a whole day is skipped, two times are one moment: it belongs to the day that exists.
    return max(sorted(begins), key=lambda begin: _first_moment(begin, zone))


def _first_moment(clock: datetime, zone: tzinfo) -> datetime:
    """Return the first moment that a time of the clock can mean."""
    return min(clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def is_over(nightly: Nightly, scheduled_at: datetime, moment: datetime) -> bool:
    """Return whether the night after the scheduled one has begun at a moment."""
    return begin_of(nightly, moment) > begin_of(nightly, scheduled_at)


def end_of(nightly: Nightly, moment: datetime) -> datetime | None:
    """Return the stop time of the night at a moment; None: the schedule has none.

    It may have passed. It is the first one after the night's time by the clock. If the clock skips
    it, it is moved by the length of the gap; if the clock shows it twice, it is the first of the
    two.
    """
    if nightly.stop_at is None:
        return None
    zone = ZoneInfo(nightly.timezone)
    begin = begin_of(nightly, moment)
    end = datetime.combine(begin.date(), time.fromisoformat(nightly.stop_at))
    if end <= begin:
        end += _DAY
    return end.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)


def stop_time(text: str, present: datetime) -> datetime:
    """Return the next moment of a time such as `06:30`, or the moment of a date with a time.

    The time is in the zone of `present`; without a zone, `present` and the result are in this
    machine's.

    Raises:
        UsageError: the text is neither, or the moment has passed.
    """
    hour_and_minute = re.fullmatch(r"(\d{1,2}):(\d{2})", text)
    try:
        if hour_and_minute:
            time_of_day = time(int(hour_and_minute[1]), int(hour_and_minute[2]))
            today = datetime.combine(present.date(), time_of_day)
            # The clock may show a time twice.
            times = [today, today.replace(fold=1), today + _DAY]
        else:
            times = [datetime.fromisoformat(text)]
    except ValueError as error:
        raise UsageError(
            f"--stop-at {text}: is not a time; write 06:30, or 2026-11-22T06:30"
        ) from error
    # Times of one zone would be compared by the clock alone.
    for clock_time in times:
        zone = clock_time.tzinfo or present.tzinfo
        moment = clock_time.replace(tzinfo=zone).astimezone(UTC)
        if moment > present.astimezone(UTC):
            return moment.astimezone(present.tzinfo)
    raise UsageError(f"--stop-at {text}: has passed")
