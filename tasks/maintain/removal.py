"""The removal of single responses, for example of one that is far too long.

A removed response is missing, so the next run samples it again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.ledger.pruning import Pruned, forget
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted
from tasks.run.missing_work import removal_times
from tasks.run.run_context import LEDGER
from tasks.run.writing import StageReport
from warehouse import Row, Warehouse, WarehouseError, refuse_other_version
from warehouse.compaction import responses_where


class ResponseChoice(NamedTuple):
    """A choice of responses: those that meet all given conditions.

    `longer_than` counts letters and digits.
    """

    response_ids: Sequence[str] = ()
    models: Sequence[str] = ()
    task_ids: Sequence[str] = ()
    trials: Sequence[int] = ()
    vintage: str | None = None
    longer_than: int | None = None

    @property
    def conditions(self) -> dict[str, Any]:
        """Conditions in SQL on the columns of `responses` -> their values; empty if nothing is
        given.
        """
        values = {
            "list_contains(?, response_id)": list(self.response_ids) or None,
            "list_contains(?, model)": list(self.models) or None,
            "list_contains(?, task_id)": list(self.task_ids) or None,
            "list_contains(?, trial)": list(self.trials) or None,
            "vintage = ?": self.vintage,
            "chars_alnum > ?": self.longer_than,
        }
        return {condition: value for condition, value in values.items() if value is not None}


def chosen_responses(job: Job, choice: ResponseChoice) -> list[Row]:
    """Return the chosen responses, the longest first, without reading texts.

    Raises:
        UsageError: no condition is given, or a named response does not exist.
        WarehouseError: a part cannot be read.
    """
    if not choice.conditions:
        raise UsageError(
            "name the responses to remove: their ids, or --model, --task, --trial, --vintage,"
            " --longer-than"
        )
    values = list(choice.conditions.values())
    rows = responses_where(Warehouse(job.warehouse).store, " and ".join(choice.conditions), values)
    missing_ids = set(choice.response_ids) - {row["response_id"] for row in rows}
    if missing_ids:
        raise UsageError(
            f"{min(missing_ids)}: no stored response has this id and matches the other options"
        )
    return rows


def forget_removed(job: Job) -> Pruned:
    """Delete the replies in the ledger that belong to removed responses.

    Raises:
        PipelineError: the ledger cannot be opened or written.
    """
    with Warehouse(job.warehouse).reader() as reader:
        removed = removal_times(reader)
    return forget(job.warehouse / LEDGER, removed) if removed else Pruned()


def remove(job: Job, choice: ResponseChoice, reason: str) -> StageReport:
    """Remove responses permanently, with all verdicts on them; the next run samples them again by
    new calls.

    Raises:
        UsageError: no condition is given, or a named response does not exist.
        WarehouseBusy: a run is in progress on the warehouse.
        WarehouseError: a part cannot be read, or the disk cannot be written.
        PipelineError: the ledger cannot be written.
    """
    warehouse = Warehouse(job.warehouse)
    if refuse_other_version(warehouse.root) is None:  # there is no warehouse
        chosen_responses(job, choice)  # raises an error about an unknown id first
        raise UsageError(f"{warehouse.root}: no response is stored there, so none can be removed")
    with warehouse.alone(notice):
        damage = warehouse.damage()
        if damage:
            raise WarehouseError(
                f"{damage[0]}; run `prbench aggregate` to repair it, then remove again"
            )
        rows = chosen_responses(job, choice)
        columns = {"reason": reason, "run_id": job.run_id, "created_at": datetime.now(UTC)}
        warehouse.write(
            "removals", [{"response_id": row["response_id"], **columns} for row in rows]
        )
        # From here on they count as removed; after a kill, the next compaction does the rest.
        warehouse.clean()
        warehouse.publish()
        freed = forget_removed(job)
    n_replies = counted(freed.entries, "reply", "replies")
    summary = f"{counted(len(rows), 'response')} removed, with {n_replies} in the ledger"
    return StageReport("remove", len(rows), notes=[summary, "the next run samples them again"])
