"""What can be compared: the names that another one stands beside, equal in everything else."""

from collections.abc import Sequence

import sql
from tasks.compare.model_run import COLUMN_OF, Kind, ModelRun, Side
from tasks.compare.pairs import grouped, model_runs, of_revision
from warehouse import Reader


def comparable(reader: Reader, benchmark: str, revision: str, kind: Kind) -> list[list[Side]]:
    """Sides that can be compared, in groups that differ in nothing but what is compared.

    They are of the revision, as in a comparison: where nothing of it is stored, of all. Whether two sides have a task
    in common is not looked at.

    Raises:
        PipelineError: there is no verdict yet.
    """
    every = [each for each in of_revision(model_runs(reader, benchmark), revision) if each.is_by_judge]
    groups = grouped(kind, _sides(reader, benchmark, kind, every)).values()
    found = [[side for side in group if _has_another(side, group)] for group in groups]
    return [group for group in found if group]


def _sides(reader: Reader, benchmark: str, kind: Kind, every: Sequence[ModelRun]) -> list[Side]:
    if kind != "run":
        return [Side(getattr(each, COLUMN_OF[kind]), each) for each in every]
    by_id = {each.model_run_id: each for each in every}
    rows = reader.rows(sql.read("questions/compare/model_runs_of_runs"), {"benchmark": benchmark})
    return [Side(row["run_id"], by_id[row["model_run_id"]]) for row in rows if row["model_run_id"] in by_id]


def _has_another(side: Side, group: Sequence[Side]) -> bool:
    """Whether a group has another model run under another name."""
    own = side.model_run.model_run_id
    return any(other.name != side.name and other.model_run.model_run_id != own for other in group)
