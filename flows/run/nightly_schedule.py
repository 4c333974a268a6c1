"""Nights by the clock: which one it is, and when calling has to stop."""

import re
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

from tasks.config.operations import Nightly
from tasks.rules.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
STOP_TIME = r"^(\d{1,2}:\d{2}|\d{4}-?[0-9W].+)$"
"""What every text that `stop_time` takes looks like, by which forms refuse others at once."""


NIGHT = r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$"
"""What the label of a night looks like: a day, with a time where the schedule names several on a day."""


def refuse_no_night(label: str) -> None:
    """Refuse what is no label of a night.

    Raises:
        UsageError: it is none.
    """
    try:
        datetime.fromisoformat(label if re.search(NIGHT, label) else "")
    except ValueError as error:
        raise UsageError(f"--night {label}: is not a date; write 2026-11-22") from error


def night_of(nightly: Nightly, now: datetime) -> str:
    """The label of the night that belongs to a moment: that of the last time at or before it that the schedule named.

    It is the day in the schedule's time zone, so a night that is started again after midnight is still the same; with
    the time of day where a schedule names several on that day.
    """
    begun = begin_of(nightly, now)
    midnight = datetime.combine(begun.date(), time(), tzinfo=begun.tzinfo)
    first = next(CronSim(nightly.cron, midnight - timedelta(minutes=1)))
    second = next(CronSim(nightly.cron, first))
    return f"{begun:%Y-%m-%d}" if second.date() != begun.date() else f"{begun:%Y-%m-%dT%H:%M}"


def begin_of(nightly: Nightly, now: datetime) -> datetime:
    """The last time at or before a moment that the schedule names, in its time zone."""
    local = now.astimezone(ZoneInfo(nightly.timezone))
    # The search leaves out the minute that it begins with.
    after = local.replace(second=0, microsecond=0) + timedelta(minutes=1)
    begun: datetime = next(CronSim(nightly.cron, after, reverse=True))
    return begun


def stop_time(text: str, now: datetime) -> datetime:
    """The moment that `06:30` (the next time that it is so late, in the zone of `now`) or a date with time means.

    Raises:
        UsageError: it is neither, or it has passed.
    """
    clock = _CLOCK.fullmatch(text)
    try:
        if clock:
            at = datetime.combine(now.date(), time(int(clock[1]), int(clock[2])), tzinfo=now.tzinfo)
            return at if at > now else datetime.combine(now.date() + timedelta(days=1), at.time(), tzinfo=now.tzinfo)
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--stop-at {text}: is not a time; write 06:30, or 2026-11-22T06:30") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    if moment <= now:
        raise UsageError(f"--stop-at {text}: has passed")
    return moment
