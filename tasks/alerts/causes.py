"""Causes of low coverage: an alert for each model or judge that fell short by itself."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tasks.alerts.findings import Alert, Row
from tasks.config.job import Job
from tasks.llm.endpoint_health import NO_REPLY
from tasks.llm.replies import NOT_SERVED
from tasks.rules.variants import AUGMENTED
from tasks.run.coverage import CoverageCell, LowCoverage, import_line
from tasks.run.run_context import Callee, callees
from tasks.run.writing import CALLED_KINDS, JUDGE, MODEL, RUBRIC_WRITER, StageReport


@dataclass(frozen=True)
class Stop:
    """A stopped endpoint: the model that is called there, why it was stopped, and the labels of the
    judges that need it.
    """

    callee: Callee
    reason: str
    judges: frozenset[str] = frozenset()

    def explains(self, cell: CoverageCell) -> bool:
        """Return whether the cell is incomplete because of this stop."""
        if self.callee.kind == MODEL:
            return cell.model == self.callee.label
        return cell.judge in self.judges


def stops_of(job: Job, reports: Sequence[StageReport]) -> list[Stop]:
    """Return the models, judges and rubric writers whose endpoints were stopped in a run."""
    stops: dict[str, Stop] = {}
    for callee in callees(job, CALLED_KINDS):
        # As `RunContext.add_notices` writes it.
        beginning = f"{callee.target.endpoint_name}: "
        for report in reports:
            # Models and judges have limits of their own, so an endpoint of both may be stopped for
            # one of them only.
            is_called_by_stage = (callee.kind == MODEL) == (report.stage == "sample")
            for line in report.stopped:
                if is_called_by_stage and line.startswith(beginning):
                    reason = line.removeprefix(beginning)
                    stops[str(callee)] = Stop(callee, reason, _judges_needing(callee, job))
    return list(stops.values())


def _judges_needing(callee: Callee, job: Job) -> frozenset[str]:
    """Return the labels of the judges that cannot decide without this judge or rubric writer."""
    if callee.kind == RUBRIC_WRITER:
        return frozenset(judge.label for judge in job.settings.judges if judge.rubric == AUGMENTED)
    return frozenset({callee.label, callee.cascade or callee.label})


def coverage_alerts(
    low: LowCoverage,
    stops: Sequence[Stop] = (),
    *,
    is_cut_short: bool = False,
    errors: Mapping[tuple[str, str], str] = {},
) -> list[Alert]:
    """Return an alert for each cause of low coverage.

    A stopped endpoint is the cause of all cells that need it. Where a model has too few responses,
    its missing verdicts are a consequence, as is everything that a run at its budget or stop time
    has not begun.

    Args:
        low: the cells below the bar.
        stops: endpoints that were stopped.
        is_cut_short: the run reached its budget or stop time, which is an alert of its own.
        errors: kind and label of a model or judge -> its most frequent error.
    """
    alerts = [_missing_import(label) for label in low.labels_without_import]
    unexplained = list(low.cells)
    for stop in stops:
        explained = [cell for cell in low.cells if stop.explains(cell)]
        callee = stop.callee
        # A model with enough responses is no cause of too few verdicts on them.
        if any((cell.judge is None) == (callee.kind == MODEL) for cell in explained):
            unexplained = [cell for cell in unexplained if not stop.explains(cell)]
            alerts.append(_shortfall(low, callee.kind, callee.label, explained, stop=stop))
    for (kind, label), cells in _cells_by_cause(low, unexplained, is_cut_short).items():
        error = errors.get((kind, label), "")
        alerts.append(_shortfall(low, kind, label, cells, error=error))
    return alerts


def _cells_by_cause(
    low: LowCoverage,
    cells: Sequence[CoverageCell],
    is_cut_short: bool,
) -> dict[tuple[str, str], list[CoverageCell]]:
    """Return incomplete cells by the kind and label of the model or judge that fell short."""
    incomplete_models = {cell.model for cell in low.cells if cell.judge is None}
    cells_by_cause: dict[tuple[str, str], list[CoverageCell]] = {}
    for cell in cells:
        # Its failures alone keep it below the bar, even if all that is missing succeeded.
        is_failing = cell.due - sum(cell.failures.values()) < low.bar * cell.due
        is_consequence = is_cut_short or (cell.judge and cell.model in incomplete_models)
        if is_failing or not is_consequence:
            cause = (JUDGE, cell.judge) if cell.judge else (MODEL, cell.model)
            cells_by_cause.setdefault(cause, []).append(cell)
    return cells_by_cause


def _missing_import(label: str) -> Alert:
    line = import_line(label)
    happened = "got no imported responses"
    facts = {
        "warnings": [line],
        "of": MODEL,
        "happened": happened,
        "share": 0.0,
    }
    return Alert("coverage", label, line, facts, f"model {label}", happened)


def _shortfall(
    low: LowCoverage,
    kind: str,
    label: str,
    cells: Sequence[CoverageCell],
    *,
    stop: Stop | None = None,
    error: str = "",
) -> Alert:
    """Return the alert about a model, judge or rubric writer that left these cells incomplete."""
    # Responses of a model; verdicts that a judge or a rubric writer left missing.
    is_model = kind == MODEL
    counted_cells = [cell for cell in cells if (cell.judge is None) == is_model]
    n_done = sum(cell.done for cell in counted_cells)
    n_due = sum(cell.due for cell in counted_cells)
    failures: Counter[str] = Counter()
    for cell in counted_cells:
        failures += cell.failures
    happened = _happened(n_done, failures, "" if stop is None else stop.reason)
    whom = kind if kind == RUBRIC_WRITER else f"{kind} {label}"
    details = [f"{n_done:,} of {n_due:,} {'responses' if is_model else 'verdicts'}"]
    if stop is None:
        details += [f"{count:,} {status}" for status, count in sorted(failures.items())]
        line = f"{whom} {happened}: {', '.join(details)}"
        if error:
            line += f"; most often {error}"
    else:
        endpoint = stop.callee.target.endpoint_name
        line = f"{whom} ({endpoint}) {happened}: {', '.join(details)}; {stop.reason}"
    facts = {
        "warnings": low.lines_on(cells),
        "of": kind,
        "happened": happened,
        "done": n_done,
        "due": n_due,
        "share": n_done / n_due if n_due else 1.0,
    }
    return Alert("coverage", label, line, facts, whom, happened)


def _happened(n_done: int, failures: Counter[str], reason: str) -> str:
    """Return what a model or judge did, in words for a title.

    `reason` says why its endpoint was stopped; empty: it was not.
    """
    is_silent = not reason and n_done == 0 and failures and set(failures) <= NOT_SERVED
    if is_silent or reason.startswith(NO_REPLY):
        return "stopped replying" if n_done else "gave no reply"
    if reason:
        return "refused further calls" if n_done else "refused all calls"
    return "stayed below the coverage bar"


def control_alerts(
    control_sets: Sequence[Row],
    bar: float,
    explained_judges: Collection[str] = (),
) -> list[Alert]:
    """Return an alert for each judge that decided too little of its control set.

    A drift of such a judge may be missed.

    Args:
        control_sets: the `judge` of each control set, with `n_decided` of its `n_members`.
        bar: the least share to decide.
        explained_judges: those with an alert about the cause.
    """
    alerts = []
    for row in control_sets:
        judge = row["judge"]
        if judge in explained_judges or row["n_decided"] >= bar * row["n_members"]:
            continue
        happened = "left the control set incomplete"
        line = (
            f"judge {judge} {happened}: {row['n_decided']} of {row['n_members']} verdicts, so drift"
            " of the judge may be missed"
        )
        share = row["n_decided"] / row["n_members"]
        facts = {
            **row,
            "of": JUDGE,
            "happened": happened,
            "share": share,
        }
        whom = f"judge {judge}"
        alerts.append(Alert("coverage", judge, line, facts, whom, happened))
    return alerts
