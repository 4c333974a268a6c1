"""Which judges decide otherwise than they did."""

from tasks.config.settings import Job
from tasks.drift.sets import control_sets
from tasks.rules.control import Drifted
from tasks.run.missing_work import open_scope
from warehouse import Warehouse


def drifted(job: Job) -> list[Drifted]:
    """The configured judges that are out of control in this night; earlier nights are in the view `judge_drift`."""
    if job.night is None:
        return []
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader)
        sets = [control_set.set_id for control_set in control_sets(job, scope, reader) if control_set.set_id]
        rows = reader.rows(
            "select judge, night, n_decided, agreement, centre, lower_limit, min_agreement, met_share, "
            "first_met_share, cause from judge_drift "
            "where is_out_of_control and night = ? and list_contains(?::varchar[], set_id) order by judge",
            [job.night, sets],
        )
    return [Drifted(**row) for row in rows]
