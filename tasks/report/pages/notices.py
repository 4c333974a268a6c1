"""What one should know before one quotes a figure of the report."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasks.llm.embedded import is_embedded
from tasks.report.edition import Edition

_NAMED = 4
"""So many names stand in a notice; of the others it says how many they are."""


@dataclass(frozen=True)
class Notice:
    """One thing to know: how grave it is, what it is, and the page that shows more."""

    level: Literal["bad", "warn", "good"]
    text: str
    link: str


def notices(edition: Edition) -> list[Notice]:
    """The notices of an edition, the gravest first; if there is nothing to know, that."""
    found = [*_embedded(edition), *_drifted(edition), *_changed(edition), *_quality(edition), *_coverage(edition)]
    found.sort(key=lambda notice: ("bad", "warn", "good").index(notice.level))
    if not edition.entries:
        return [Notice("warn", "No answer has been judged here yet, so there is nothing to rank.", "data.html")]
    if all(notice.level == "good" for notice in found):
        bar = f"{edition.job.settings.coverage.min:.0%}"
        return [*found, Notice("good", f"All checks hold, every model is judged to at least {bar}.", "data.html")]
    return found


def _embedded(edition: Edition) -> Iterable[Notice]:
    settings = edition.job.settings
    judges = {judging["judge"] for judging in edition.judgings}
    if found := [judge.label for judge in settings.judges if is_embedded(judge.name) and judge.label in judges]:
        text = f"{_some(found)} is the embedded model, far too small to judge: its figures only show that all works."
        yield Notice("bad", text, "judges.html")


def _drifted(edition: Edition) -> Iterable[Notice]:
    for row in edition.rows("drifted"):
        text = (
            f"{row['judge']} decided {row['agreement']:.1%} of its control verdicts as at first in {row['night']}: it "
            "is out of control, and differences of that night may be the judge's."
        )
        yield Notice("bad", text, "judges.html#drift")


def _changed(edition: Edition) -> Iterable[Notice]:
    for row in edition.rows("changes"):
        if row["is_significant"] and row["judging"] == edition.main:
            verb = "fell" if row["difference"] < 0 else "rose"
            text = (
                f"{row['model']} {verb} by {abs(row['difference']):.3f} on {row['split']} since {row['earlier']} "
                f"(corrected p {_p(row['p_adjusted'])}, {row['n_tasks']} tasks)."
            )
            yield Notice("bad" if verb == "fell" else "good", text, "#changes")


def _quality(edition: Edition) -> Iterable[Notice]:
    (facts,) = edition.rows("facts")
    if facts["n_refused"]:
        text = f"Refused by the checks, so without a part in any figure: {_count(facts['n_refused'], 'task')}."
        yield Notice("warn", text, "data.html")
    failed = edition.rows("last_checks")
    if grave := [row for row in failed if row["severity"] != "warn"]:
        text = f"What must hold and does not, {_count(len(grave), 'check')}: {_some(_checks(grave))}."
        yield Notice("bad", text, "data.html")
    if slight := [row for row in failed if row["severity"] == "warn"]:
        text = f"What should hold and does not, {_count(len(slight), 'check')}: {_some(_checks(slight))}."
        yield Notice("warn", text, "data.html")


def _checks(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [f"{row['check_name']} ({row['n_failed']} of {row['n_evaluated']})" for row in rows]


def _coverage(edition: Edition) -> Iterable[Notice]:
    rows = edition.rows("leaderboard")
    # People and imported verdicts cover what they cover; the bar is for judges that are asked for all.
    configured = {judge.label for judge in edition.job.settings.judges}
    asked = {judging["judging"] for judging in edition.judgings if judging["judge"] in configured} or {edition.main}
    if low := [row for row in rows if row["is_below_bar"] and row["judging"] in asked and not row["is_own_hard"]]:
        names = dict.fromkeys(f"{row['model']} by {row['judging']}" for row in low)
        bar = f"{edition.job.settings.coverage.min:.0%}"
        text = f"Coverage below {bar}, so the figures rest on a part of a split: {_some(list(names))}."
        yield Notice("warn", text, "#leaderboard")
    if any(row["n_tasks"] > 1 and row["ci_low"] is None for row in rows):
        text = "Figures without an interval are newer than the last `prbench aggregate`, which draws them."
        yield Notice("warn", text, "#leaderboard")


def _some(names: list[str]) -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _p(value: float | None) -> str:
    if value is None:
        return "unknown"
    return "below 0.0001" if value < 0.0001 else f"{value:.4f}"
