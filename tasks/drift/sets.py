"""Which control set is a judging's."""

from dataclasses import dataclass
from typing import Any

from tasks.config.job import Job
from tasks.run.judgings import Judging, judgings
from tasks.run.missing_work import WantedTasks
from warehouse import Reader


@dataclass(frozen=True)
class ControlSet:
    """A control set; `set_id` is None where none was chosen yet."""

    judging: Judging
    set_id: str | None


def control_sets(job: Job, wanted: WantedTasks, reader: Reader) -> list[ControlSet]:
    """The control set of every configured judge; its first repetition is the one that is watched.

    Should two runs at once have chosen one each, the older one is the judging's.
    """
    watched = [judging for judging in judgings(job, wanted.benchmark) if judging.judge_trial == 1]
    return [ControlSet(judging, _set_of(reader, wanted, judging.columns)) for judging in watched]


def _set_of(reader: Reader, wanted: WantedTasks, judging: dict[str, Any]) -> str | None:
    key = {**wanted.key, **judging}
    where = " and ".join(f"{column} = ?" for column in key)
    found: str | None = reader.value(
        f"select set_id from control_set where {where} group by set_id order by min(created_at), set_id",
        list(key.values()),
    )
    return found
