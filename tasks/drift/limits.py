"""The control limits of each night of a control set, computed from the earlier nights."""

from datetime import UTC, datetime
from typing import Any

from tasks.config.job import Job
from tasks.drift.sets import control_sets
from tasks.rules.statistics.control import METHOD, Night, limits
from tasks.run.missing_work import WantedTasks
from warehouse import Reader


def changed_limits(job: Job, wanted: WantedTasks, reader: Reader) -> list[dict[str, Any]]:
    """The rows of `control_limits` that are missing or differ from what is stored.

    A night that is judged late, or in two runs, changes the limits of later nights. The bar of a night stays the one
    that was configured when it was judged.
    """
    found = []
    for control_set in control_sets(job, wanted, reader):
        if control_set.set_id is not None:
            found += _changed(job, reader, control_set.set_id)
    return found


def _changed(job: Job, reader: Reader, set_id: str) -> list[dict[str, Any]]:
    stored = {row["night"]: row for row in reader.rows("from control_limits where set_id = ?", [set_id])}
    nights = {}
    for row in reader.rows(
        "select night, n_decided, n_agreeing from staging.control_nights where set_id = ?", [set_id]
    ):
        label = row["night"]
        bar = job.settings.drift.min_agreement
        if label in stored and label != job.night:
            bar = stored[label]["min_agreement"]
        nights[label] = Night(label, row["n_decided"], row["n_agreeing"], bar)
    changed = []
    for expected in limits(nights.values()):
        night = nights[expected.label]
        row = {
            "set_id": set_id,
            "night": expected.label,
            "n_decided": night.n_decided,
            "n_agreeing": night.n_agreeing,
            "min_agreement": night.bar,
            "method": METHOD,
            "centre": expected.centre,
            "lower_limit": expected.lower_limit,
            "cause": expected.cause,
        }
        if row != {name: stored.get(expected.label, {}).get(name) for name in row}:
            changed.append({**row, "created_at": datetime.now(UTC)})
    return changed
