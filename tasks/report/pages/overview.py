"""The overview: who leads, how surely, and what one should know before one quotes a figure of the report."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tasks.llm.embedded import is_embedded
from tasks.report.content.edition import Edition, task_address
from tasks.report.content.figures import Column, Figure, Page, Row, Rows, columns, ends
from tasks.report.drawing import charts
from tasks.report.drawing.plots import by_value
from tasks.rules.text.numbers import counted
from tasks.rules.verdict import TERNARY_AS_BINARY

_LEADERBOARD = (
    *columns(
        "judging split rank model mean_score ci_low ci_high raw_mean_score raw_ci_low raw_ci_high "
        "rank_low rank_high mean_lower mean_upper n_tasks n_tasks_full n_tasks_wanted n_tasks_ranked coverage n_trials "
        "met_share mean_chars_alnum answers_usd",
        mean_chars_alnum="Characters",
    ),
    Column("judging_usd", "judging", "usd", "Cost"),
)


_CHANGES = (
    *columns("judging model split difference"),
    *ends("ci"),
    *columns("p_adjusted is_significant earlier later earlier_mean later_mean n_tasks"),
)


_CHANGED_TASKS = columns("judging model task_id difference topic earlier later earlier_score later_score")


def side_by_side(rows: Rows) -> list[dict[str, Any]]:
    """The rows with the address of a page that sets the answers of then and now side by side."""
    return [
        dict(row) | {"address": task_address(row["task_id"], _sampling(row, "earlier"), _sampling(row, "later"))}
        for row in rows
    ]


def _sampling(row: Row, which: str) -> dict[str, Any]:
    return {"model": row["model_label"], "model_config_hash": row["model_config_hash"], "vintage": row[which]}


def facts(edition: Edition) -> list[tuple[str, str, str]]:
    """The size of it: (what, how much, a note beside it)."""
    (row,) = edition.rows("overview/facts")
    usd = (row["responses_usd"] or 0) + (row["verdicts_usd"] or 0)
    is_priced = row["responses_usd"] is not None or row["verdicts_usd"] is not None
    judges = {judging["judge"] for judging in edition.judgings}
    ways = f"in {len(edition.judgings):,} ways" if len(edition.judgings) > len(judges) else ""
    unpriced = row["n_responses_unpriced"] + row["n_verdicts_unpriced"]
    return [
        ("Tasks", f"{row['n_tasks']:,}", counted(row["n_criteria"] or 0, "criterion", "criteria")),
        ("Models", f"{len(edition.entries):,}", ""),
        ("Judges", f"{len(judges):,}", ways),
        ("Responses", f"{row['n_responses']:,}", f"{row['n_responses_failed']:,} failed"),
        ("Verdicts", f"{row['n_verdicts']:,}", f"{row['n_failed']:,} failed"),
        ("Cost", f"${usd:,.2f}" if is_priced else "unknown", f"{unpriced:,} of unknown price" if unpriced else ""),
    ]


OVERVIEW = Page(
    "index",
    "Overview",
    "Which model scores best, how certain that is, and what the scores are based on.",
    (
        Figure(
            "leaderboard",
            "Leaderboard",
            "Mean $score on each split, with its 95 % interval for other tasks of the same kind. A task's score is the "
            "mean over its complete trials. Ranks compare models on the tasks for which every ranked model has a "
            "complete trial, before a mean below 0 is clipped. Possible ranks are those that the intervals allow; a "
            "model is tied with the leader if it could be first. `prbench diff` compares two models task by task, "
            "which can find a difference between models that are tied here. A model without a score has no verdicts by "
            "the judge. The $score of a response is $formula: $explained",
            _LEADERBOARD,
        ),
        Figure(
            "changes",
            "What changed",
            "Each model's latest vintage (or the one that this report shows) compared with its previous comparable "
            "one, by the same judge, on the tasks with a complete trial in both. A difference is significant if its "
            "p-value, corrected for all rows (Holm), is at most 0.05; the interval is not corrected.",
            _CHANGES,
            partial(by_value, column="split", draw=charts.intervals, value="difference", title="Difference", zero=True),
            empty="No model has two vintages to compare. That takes two vintages that the same judge decided in the "
            "same way, with tasks that have a complete trial in both.",
            is_table=True,
        ),
        Figure(
            "changed_tasks",
            "Where it changed",
            "The tasks behind each significant change: for each model the ten that changed most in the same direction. "
            "A task's link shows the earlier and the latest responses side by side, with flipped verdicts marked.",
            _CHANGED_TASKS,
            empty="There is no significant change.",
            is_table=True,
            listed=side_by_side,
        ),
    ),
    template="index.html",
)


_NAMED = 4
"""So many names stand in a notice; of the others it says how many they are."""
_GRAVE_SHARE = 0.1
"""Where more than this of the answers or verdicts failed, what is left may not be like what is lost."""
Level = Literal["bad", "warn", "good"]


@dataclass(frozen=True)
class Notice:
    """One thing to know: how grave it is, what it is, and the page that shows more."""

    level: Level
    text: str
    link: str


def notices(edition: Edition) -> list[Notice]:
    """The notices of an edition, the gravest first; if there is nothing to know, that."""
    parts = (_embedded, _answers, _verdicts, _hiding, _drifted, _changed, _quality, _coverage, _narrowed)
    found = [notice for part in parts for notice in part(edition)]
    found.sort(key=lambda notice: ("bad", "warn", "good").index(notice.level))
    if all(notice.level == "good" for notice in found):
        bar = f"{edition.job.settings.coverage.min:.0%}"
        return [
            *found,
            Notice("good", f"All checks passed, and every model has a coverage of at least {bar}.", "data.html"),
        ]
    return found


def _embedded(edition: Edition) -> Iterable[Notice]:
    settings = edition.job.settings
    judges = {judging["judge"] for judging in edition.judgings}
    if found := [judge.label for judge in settings.judges if is_embedded(judge.name) and judge.label in judges]:
        text = f"{_some(found)} is the embedded model, far too small to judge: scores only show that all works."
        yield Notice("bad", text, "judges.html")


def _answers(edition: Edition) -> Iterable[Notice]:
    """Whose answers failed to a grave part, who has answers and no scores, or that nobody has answered at all."""
    rows = edition.rows("overview/answered")
    unjudged = [row["model"] for row in rows if not row["n_judged"] and row["n_failed"] < row["n_answers"]]
    if not rows:
        yield Notice("warn", "There are no responses yet, so there is nothing to rank.", "data.html")
    elif unjudged and not any(row["n_judged"] for row in rows):
        text = "No response has been judged yet, so there are no scores; run `prbench judge`."
        yield Notice("bad", text, "tasks.html")
    elif unjudged:
        yield Notice("warn", f"Not judged yet, so without scores: {_some(unjudged)}.", "tasks.html")
    for row in rows:
        if row["n_failed"] > _GRAVE_SHARE * row["n_answers"]:
            lost = _of(row["n_failed"], row["n_answers"], "response")
            text = f"{lost} of {row['model']} failed ({_words(row['causes'])})."
            yield Notice("bad", text, "length-and-cost.html#answer_tokens")


def _verdicts(edition: Edition) -> Iterable[Notice]:
    """Judges whose verdicts failed to a grave part."""
    by_grader: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in edition.rows("judges/judge_failures"):
        by_grader[row["grader"]].append(row)
    for grader, rows in by_grader.items():
        failures = [row for row in rows if row["is_failure"]]
        n_failed, n = sum(row["n"] for row in failures), rows[0]["n_verdicts"]
        if n_failed > _GRAVE_SHARE * n:
            causes = _words([row["status"] for row in failures])
            rest = "there are no scores" if n_failed == n else "its scores are based on the rest"
            text = f"{_of(n_failed, n, 'verdict')} of {grader} failed ({causes}): {rest}."
            yield Notice("bad", text, "judges.html#judge_failures")


def _hiding(edition: Edition) -> Iterable[Notice]:
    """Whose verdicts a tool made that stores failed judge calls as decisions, or may."""
    by_judge: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for row in edition.rows("overview/hiding"):
        by_judge[row["judge"], row["is_known"]].append(row["model"])
    for (judge, is_known), models in by_judge.items():
        said = (
            " from a tool that stores failed judge calls as decisions, so some scores may be wrong"
            if is_known
            else ", and it is not known whether failed judge calls count as decisions"
        )
        yield Notice("warn", f"Verdicts of {judge} on {_some(models)} were imported{said}.", "judges.html")


def _narrowed(edition: Edition) -> Iterable[Notice]:
    if edition.narrowed_to:
        text = (
            f"This report shows only {edition.narrowed_to}. It includes own hard selections if all their tasks are in "
            "it, and leaves out figures that are measured over all splits at once."
        )
        yield Notice("warn", text, "data.html")


def _drifted(edition: Edition) -> Iterable[Notice]:
    for row in edition.rows("overview/drifted"):
        text = (
            f"{row['judge']} has drifted: in {row['night']} only {row['agreement']:.1%} of its verdicts on the control "
            "set were the same as at first, so score changes of that night may come from the judge."
        )
        yield Notice("bad", text, "judges.html#judge_drift")


def _changed(edition: Edition) -> Iterable[Notice]:
    splits: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in edition.rows("overview/changes"):
        if row["is_significant"] and row["judging"] == edition.main:
            verb = "fell" if row["difference"] < 0 else "rose"
            splits[row["model"], verb, row["earlier"]].append(
                f"by {abs(row['difference']):.3f} on {row['split']} "
                f"(corrected p {_p(row['p_adjusted'])}, {counted(row['n_tasks'], 'task')})"
            )
    for (model, verb, earlier), found in splits.items():
        text = f"{model} {verb} since {earlier} {_some(found)}."
        yield Notice("bad" if verb == "fell" else "good", text, "#changes")


def _quality(edition: Edition) -> Iterable[Notice]:
    (facts,) = edition.rows("overview/facts")
    refused = f"{counted(facts['n_refused'], 'task')} refused and left out of all scores" if facts["n_refused"] else ""
    failed = edition.rows("overview/last_checks")
    kinds: tuple[tuple[Level, str], ...] = (("bad", "policy fail or quarantine"), ("warn", "warnings"))
    for level, policy in kinds:
        rows = [row for row in failed if (row["severity"] == "warn") == (level == "warn")]
        if names := [f"{row['check_name']} ({row['n_failed']} of {row['n_evaluated']})" for row in rows]:
            text = f"Failed data checks ({policy}), {counted(len(names), 'check')}: {_some(names)}"
            yield Notice(level, f"{text}; {refused}." if refused and level == "bad" else f"{text}.", "data.html")
        elif refused and level == "bad":
            yield Notice("warn", f"{refused}.", "data.html")


def _coverage(edition: Edition) -> Iterable[Notice]:
    rows = edition.rows("overview/leaderboard")
    # People and imported verdicts cover what they cover; the bar is for judges that are asked for all.
    configured = {judge.label for judge in edition.job.settings.judges}
    called = [judging for judging in edition.judgings if judging["grading"] != TERNARY_AS_BINARY]
    asked = {judging["judging"] for judging in called if judging["judge"] in configured} or {edition.main}
    judged = [row for row in rows if row["coverage"] and not row["is_own_hard"]]  # of the others `_answers` speaks
    if low := [row for row in judged if row["is_below_bar"] and row["judging"] in asked]:
        names = dict.fromkeys(f"{row['model']} by {row['judging']}" for row in low)
        bar = f"{edition.job.settings.coverage.min:.0%}"
        text = f"Coverage below {bar}, so the scores are based on only part of a split: {_some(list(names))}."
        yield Notice("warn", text, "#leaderboard")
    if parts := [row for row in rows if row["n_tasks_skipped"]]:
        names = dict.fromkeys(
            f"{row['model']} ({row['n_tasks']} of {counted(row['n_tasks_wanted'], 'task')})" for row in parts
        )
        text = (
            "Scores on a random part of the tasks, since all comparisons of the model are settled; their intervals "
            f"allow for that: {_some(list(names))}."
        )
        yield Notice("warn", text, "#leaderboard")
    if any(row["n_tasks"] > 1 and row["is_small"] is None for row in rows):
        text = "Scores without an interval are newer than the last `prbench aggregate`, which computes intervals."
        yield Notice("warn", text, "#leaderboard")


def _some(names: list[str]) -> str:
    more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


def _words(statuses: Iterable[str]) -> str:
    return _some([status.replace("_", " ") for status in statuses])


def _of(n: int, n_all: int, what: str) -> str:
    return f"{'All' if n == n_all else f'{n:,} of'} {counted(n_all, what)}"


def _p(value: float | None) -> str:
    if value is None:
        return "unknown"
    return "below 0.0001" if value < 0.0001 else f"{value:.4f}"
