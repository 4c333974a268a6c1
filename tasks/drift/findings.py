"""Which judges decide otherwise than they did."""

from dataclasses import dataclass

from tasks.drift.sets import control_sets
from tasks.rules.control import BAR
from tasks.scope import open_scope
from tasks.settings import Job
from warehouse import Warehouse


@dataclass(frozen=True)
class Drifted:
    """A judge whose agreement with its first verdicts was out of control in a night.

    Attributes:
        n_decided: members of the control set that it decided in the night.
        agreement: the share of them that it decided as at first.
        centre: the agreement that the earlier nights in control lead to expect; None without any.
        lower_limit: the lowest agreement that would be in control; None without such nights.
        min_agreement: the configured bar; None without one.
        met_share: the share of them that it calls met now; a partial one counts as a half.
        first_met_share: the share of them that it called met at first.
        cause: what the agreement is below: `limit`, `bar`, or `limit and bar`.
    """

    judge: str
    night: str
    n_decided: int
    agreement: float
    centre: float | None
    lower_limit: float | None
    min_agreement: float | None
    met_share: float
    first_met_share: float
    cause: str

    @property
    def met_change(self) -> float:
        """How much more often it calls the same criteria met than at first: above 0 it has become more lenient."""
        return self.met_share - self.first_met_share

    @property
    def line(self) -> str:
        """What was found, in one line."""
        below = f"the configured {self.min_agreement:.1%}" if self.cause == BAR else f"the limit {self.lower_limit:.1%}"
        return (
            f"{self.judge}: agrees with its first verdicts on {self.agreement:.1%} of {self.n_decided}, below {below}; "
            f"it calls {self.met_share:.1%} of them met, at first {self.first_met_share:.1%}; "
            "a change in scores may be the judge's"
        )


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
