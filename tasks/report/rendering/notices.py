"""The size of a report, and what one should know before one quotes a figure of it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tasks.figures.scope import Scope
from tasks.figures.shown.overview import LEADERBOARD
from tasks.llm.embedded import is_embedded
from tasks.rules.text.numbers import counted, some
from tasks.rules.verdict import TERNARY_AS_BINARY


def facts(scope: Scope) -> list[tuple[str, str, str]]:
    """The size of it: (what, how much, a note beside it)."""
    (row,) = scope.rows("overview/facts")
    usd = (row["responses_usd"] or 0) + (row["verdicts_usd"] or 0)
    is_priced = row["responses_usd"] is not None or row["verdicts_usd"] is not None
    judges = {judging["judge"] for judging in scope.judgings}
    ways = f"in {len(scope.judgings):,} ways" if len(scope.judgings) > len(judges) else ""
    unpriced = row["n_responses_unpriced"] + row["n_verdicts_unpriced"]
    return [
        ("Tasks", f"{row['n_tasks']:,}", counted(row["n_criteria"] or 0, "criterion", "criteria")),
        ("Models", f"{len(scope.entries):,}", ""),
        ("Judges", f"{len(judges):,}", ways),
        ("Responses", f"{row['n_responses']:,}", f"{row['n_responses_failed']:,} failed"),
        ("Verdicts", f"{row['n_verdicts']:,}", f"{row['n_failed']:,} failed"),
        ("Cost", f"${usd:,.2f}" if is_priced else "unknown", f"{unpriced:,} of unknown price" if unpriced else ""),
    ]


_GRAVE_SHARE = 0.1
"""Where more than this of the answers or verdicts failed, what is left may not be like what is lost."""
Level = Literal["bad", "warn", "good"]


@dataclass(frozen=True)
class Notice:
    """One thing to know: how grave it is, what it is, and the page that shows more."""

    level: Level
    text: str
    link: str


def notices(scope: Scope) -> list[Notice]:
    """The notices of a scope, the gravest first; if there is nothing to know, that."""
    parts = (_embedded, _answers, _verdicts, _hiding, _drifted, _changed, _quality, _coverage, _narrowed)
    found = [notice for part in parts for notice in part(scope)]
    found.sort(key=lambda notice: ("bad", "warn", "good").index(notice.level))
    if all(notice.level == "good" for notice in found):
        bar = f"{scope.job.settings.coverage.min:.0%}"
        return [
            *found,
            Notice("good", f"All checks passed, and every model has a coverage of at least {bar}.", "data.html"),
        ]
    return found


def _embedded(scope: Scope) -> Iterable[Notice]:
    settings = scope.job.settings
    judges = {judging["judge"] for judging in scope.judgings}
    if found := [judge.label for judge in settings.judges if is_embedded(judge.name) and judge.label in judges]:
        text = f"{some(found)} is the embedded model, far too small to judge: scores only show that all works."
        yield Notice("bad", text, "judges.html")


def _answers(scope: Scope) -> Iterable[Notice]:
    """Whose answers failed to a grave part, who has answers and no scores, or that nobody has answered at all."""
    rows = scope.rows("overview/answered")
    unjudged = [row["model"] for row in rows if not row["n_judged"] and row["n_failed"] < row["n_answers"]]
    if not rows:
        yield Notice("warn", "There are no responses yet, so there is nothing to rank.", "data.html")
    elif unjudged and not any(row["n_judged"] for row in rows):
        text = "No response has been judged yet, so there are no scores; run `prbench judge`."
        yield Notice("bad", text, "tasks.html")
    elif unjudged:
        yield Notice("warn", f"Not judged yet, so without scores: {some(unjudged)}.", "tasks.html")
    for row in rows:
        if row["n_failed"] > _GRAVE_SHARE * row["n_answers"]:
            lost = _of(row["n_failed"], row["n_answers"], "response")
            text = f"{lost} of {row['model']} failed ({_words(row['causes'])})."
            yield Notice("bad", text, "length-and-cost.html#answer_tokens")


def _verdicts(scope: Scope) -> Iterable[Notice]:
    """Judges whose verdicts failed to a grave part."""
    by_grader: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in scope.rows("judges/judge_failures"):
        by_grader[row["grader"]].append(row)
    for grader, rows in by_grader.items():
        failures = [row for row in rows if row["is_failure"]]
        n_failed, n = sum(row["n"] for row in failures), rows[0]["n_verdicts"]
        if n_failed > _GRAVE_SHARE * n:
            causes = _words([row["status"] for row in failures])
            rest = "there are no scores" if n_failed == n else "its scores are based on the rest"
            text = f"{_of(n_failed, n, 'verdict')} of {grader} failed ({causes}): {rest}."
            yield Notice("bad", text, "judges.html#judge_failures")


def _hiding(scope: Scope) -> Iterable[Notice]:
    """Whose verdicts a tool made that stores failed judge calls as decisions, or may."""
    by_judge: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for row in scope.rows("overview/hiding"):
        by_judge[row["judge"], row["is_known"]].append(row["model"])
    for (judge, is_known), models in by_judge.items():
        said = (
            " from a tool that stores failed judge calls as decisions, so some scores may be wrong"
            if is_known
            else ", and it is not known whether failed judge calls count as decisions"
        )
        yield Notice("warn", f"Verdicts of {judge} on {some(models)} were imported{said}.", "judges.html")


def _narrowed(scope: Scope) -> Iterable[Notice]:
    if scope.narrowed_to:
        text = (
            f"This report shows only {scope.narrowed_to}. It includes own hard selections if all their tasks are in "
            "it, and leaves out figures that are measured over all splits at once."
        )
        yield Notice("warn", text, "data.html")


def _drifted(scope: Scope) -> Iterable[Notice]:
    for row in scope.rows("overview/drifted"):
        text = (
            f"{row['judge']} has drifted: in {row['night']} only {row['agreement']:.1%} of its verdicts on the control "
            "set were the same as at first, so score changes of that night may come from the judge."
        )
        yield Notice("bad", text, "judges.html#judge_drift")


def _changed(scope: Scope) -> Iterable[Notice]:
    splits: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in scope.rows("overview/changes"):
        if row["is_significant"] and row["judging"] == scope.main:
            verb = "fell" if row["difference"] < 0 else "rose"
            splits[row["model"], verb, row["earlier"]].append(
                f"by {abs(row['difference']):.3f} on {row['split']} "
                f"(corrected p {_p(row['p_adjusted'])}, {counted(row['n_tasks'], 'task')})"
            )
    for (model, verb, earlier), found in splits.items():
        text = f"{model} {verb} since {earlier} {some(found)}."
        yield Notice("bad" if verb == "fell" else "good", text, "#changes")


def _quality(scope: Scope) -> Iterable[Notice]:
    (facts,) = scope.rows("overview/facts")
    refused = f"{counted(facts['n_refused'], 'task')} refused and left out of all scores" if facts["n_refused"] else ""
    failed = scope.rows("overview/last_checks")
    kinds: tuple[tuple[Level, str], ...] = (("bad", "policy fail or quarantine"), ("warn", "warnings"))
    for level, policy in kinds:
        rows = [row for row in failed if (row["severity"] == "warn") == (level == "warn")]
        if names := [f"{row['check_name']} ({row['n_failed']} of {row['n_evaluated']})" for row in rows]:
            text = f"Failed data checks ({policy}), {counted(len(names), 'check')}: {some(names)}"
            yield Notice(level, f"{text}; {refused}." if refused and level == "bad" else f"{text}.", "data.html")
        elif refused and level == "bad":
            yield Notice("warn", f"{refused}.", "data.html")


def _coverage(scope: Scope) -> Iterable[Notice]:
    rows = scope.rows_of(LEADERBOARD)
    # People and imported verdicts cover what they cover; the bar is for judges that are asked for all.
    configured = {judge.label for judge in scope.job.settings.judges}
    called = [judging for judging in scope.judgings if judging["grading"] != TERNARY_AS_BINARY]
    asked = {judging["judging"] for judging in called if judging["judge"] in configured} or {scope.main}
    judged = [row for row in rows if row["coverage"] and not row["is_own_hard"]]  # of the others `_answers` speaks
    if low := [row for row in judged if row["is_below_bar"] and row["judging"] in asked]:
        names = some(f"{row['model']} by {row['judging']}" for row in low)
        bar = f"{scope.job.settings.coverage.min:.0%}"
        text = f"Coverage below {bar}, so the scores are based on only part of a split: {names}."
        yield Notice("warn", text, "#leaderboard")
    if parts := [row for row in rows if row["n_tasks_skipped"]]:
        names = some(f"{row['model']} ({row['n_tasks']} of {counted(row['n_tasks_wanted'], 'task')})" for row in parts)
        text = (
            "Scores on a random part of the tasks, since all comparisons of the model are settled; their intervals "
            f"allow for that: {names}."
        )
        yield Notice("warn", text, "#leaderboard")
    if any(row["n_tasks"] > 1 and row["is_small"] is None for row in rows):
        text = "Scores without an interval are newer than the last `prbench aggregate`, which computes intervals."
        yield Notice("warn", text, "#leaderboard")


def _words(statuses: Iterable[str]) -> str:
    return some([status.replace("_", " ") for status in statuses])


def _of(n: int, n_all: int, what: str) -> str:
    return f"{'All' if n == n_all else f'{n:,} of'} {counted(n_all, what)}"


def _p(value: float | None) -> str:
    if value is None:
        return "unknown"
    return "below 0.0001" if value < 0.0001 else f"{value:.4f}"
