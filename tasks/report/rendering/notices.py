"""Notices to read before quoting a leaderboard or a report; and the size of a report."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.figures.figure import Row, Rows, grouped
from tasks.figures.scope import Scope
from tasks.figures.shown.leaderboard import LEADERBOARD
from tasks.llm.embedded import is_embedded
from tasks.rules.identity import judge_config_of
from tasks.rules.statistics.control import people_clause
from tasks.rules.statistics.intervals import FEWEST_DIFFERING
from tasks.rules.text.numbers import counted, coverage_text, list_text, rank_notes
from tasks.rules.verdict import TERNARY_AS_BINARY
from tasks.run.judge_configs import judge_configs
from tasks.run.run_context import retirements


def facts(scope: Scope) -> list[tuple[str, str, str]]:
    """Return the size of the report: (name, number, note)."""
    (row,) = scope.rows("figures/overview/facts")
    models = {entry["model"] for entry in scope.entries}
    n_vintages = len(scope.entries)
    vintages = f"in {n_vintages:,} vintages" if n_vintages > len(models) else ""
    judges = {judge_config["judge"] for judge_config in scope.judge_configs}
    n_ways = len(scope.judge_configs)
    ways = f"in {n_ways:,} ways" if n_ways > len(judges) else ""
    costs = [row["responses_usd"], row["verdicts_usd"]]
    usd = [cost for cost in costs if cost is not None]
    total = f"${sum(usd):,.2f}" if usd else "unknown"
    n_unpriced = row["n_responses_unpriced"] + row["n_verdicts_unpriced"]
    unpriced = f"{counted(n_unpriced, 'result')} of unknown price" if n_unpriced else ""
    return [
        ("Tasks", f"{row['n_tasks']:,}", counted(row["n_criteria"] or 0, "criterion", "criteria")),
        ("Models", f"{len(models):,}", vintages),
        ("Judges", f"{len(judges):,}", ways),
        ("Responses", f"{row['n_responses']:,}", f"{row['n_responses_failed']:,} failed"),
        ("Verdicts", f"{row['n_verdicts']:,}", f"{row['n_failed']:,} failed"),
        ("Cost", total, unpriced),
    ]


_GRAVE_SHARE = 0.1
"""If a larger share of responses or verdicts failed, the rest may not be representative."""
Level = Literal["bad", "warn", "good"]


class Notice(NamedTuple):
    """A notice: its severity, its text, and the page that shows more."""

    level: Level
    text: str
    link: str = "#leaderboard"


def notices(scope: Scope) -> list[Notice]:
    """Return the notices of a scope, the most severe first; without any, one that says so."""
    all_notices = list(board_notices(scope.job, scope.rows_of(LEADERBOARD)))
    for notices_on_subject in (_responses, _verdicts, _changes, _quality, _retirements):
        all_notices += notices_on_subject(scope)
    if scope.split_limit:
        text = (
            f"This report shows only {scope.split_limit}. It includes own hard selections if all"
            " their tasks are in it, and leaves out figures that are measured over all splits at"
            " once."
        )
        all_notices.append(Notice("warn", text, "data.html"))
    if all(notice.level == "good" for notice in all_notices):
        bar = f"{scope.job.settings.coverage.min:.0%}"
        text = f"All checks passed, and every model has a coverage of at least {bar}."
        all_notices.append(Notice("good", text, "data.html"))
    return sorted(all_notices, key=lambda notice: ("bad", "warn", "good").index(notice.level))


_HIDING = {
    True: (
        "Imported from a tool that stores failed judge calls as decisions, so some scores may be"
        " wrong"
    ),
    None: "Imported, and not known whether failed judge calls count as decisions",
}
"""`may_hide_failures` -> its meaning."""


def board_notices(job: Job, rows: Rows) -> Iterator[Notice]:
    """Yield the notices on the rows of a leaderboard, for the terminal and for a report."""
    judges = _embedded_judges(job) & {row["judge"] for row in rows}
    if judges:
        text = (
            f"The embedded model ({list_text(sorted(judges))}) is far too small to judge: scores"
            " show only that all stages work."
        )
        yield Notice("bad", text, "judges.html")
    judged = [row for row in rows if row.get("is_judged") is not False]
    called_rows, earlier_judges = _by_settings(job, judged)
    yield from _coverage_notices(job, called_rows or judged, rows)
    yield from _warnings("Judged with earlier settings, so no run completes it", earlier_judges)
    sampled = [row for row in rows if row.get("n_tasks_skipped")]
    yield from _warnings(
        "On a random part of the tasks, since all comparisons of the model are settled; the"
        " interval allows for it",
        _models(sampled, rows),
    )
    if any(row["ci_low"] is None for row in sampled):
        text = (
            "Some of these have no interval: too few tasks differ, or all tasks must be"
            " evaluated first."
        )
        yield Notice("warn", text)
    for may_hide, meaning in _HIDING.items():
        hiding = [row for row in judged if row.get("may_hide_failures", False) is may_hide]
        yield from _warnings(meaning, _models(hiding, rows), "judges.html")
    if any(row.get("n_tasks", 0) > 1 and row["is_small"] is None for row in rows):
        yield Notice("warn", "Some intervals are missing; `prbench aggregate` computes them.")


def _warnings(text: str, names: Sequence[str], link: str = "#leaderboard") -> Iterator[Notice]:
    """Yield a warning about what has these names, if there is any."""
    if names:
        yield Notice("warn", f"{text}: {list_text(names)}", link)


def _embedded_judges(job: Job) -> set[str]:
    """Return the labels of the judges that call the embedded model."""
    labels = set()
    for judge in job.settings.judges:
        if any(is_embedded(member.name) for member in judge.members):
            labels.add(judge.label)
    return labels


def _by_settings(job: Job, rows: Rows) -> tuple[Rows, list[str]]:
    """Return the rows by judges as they are configured, and the names of those that had other
    settings.

    Only the former are called on all criteria; nor are people, and judges of imported verdicts.
    """
    configs = judge_configs(job, load_benchmark(job.benchmark))
    configured_keys = {judge_config_of(config.columns) for config in configs}
    called_rows = [row for row in rows if judge_config_of(row) in configured_keys]
    earlier_judges = {
        row["judge_config"]
        for row in rows
        if row["judge"] in job.settings.judge_labels
        and row["grading"] != TERNARY_AS_BINARY
        and judge_config_of(row) not in configured_keys
    }
    return called_rows, sorted(earlier_judges)


def _coverage_notices(job: Job, called_rows: Rows, rows: Rows) -> Iterator[Notice]:
    """Yield notices on models, vintages and trials that cover too little."""
    low = [row for row in called_rows if row.get("is_below_bar")]
    bar = f"{job.settings.coverage.min:.0%}"
    yield from _warnings(
        f"Below the coverage bar of {bar}, so based on only part of the split", _models(low, rows)
    )
    lowest = [row for row in low if row.get("n_vintages", 1) > 1]
    yield from _warnings(
        "No vintage reaches the bar, so the one with most coverage is shown", _models(lowest, rows)
    )
    newer_vintages = [
        f"{row['model_label']} {row['newer_vintage']} ({coverage_text(row['newer_coverage'])} of"
        f" {row['split']})"
        for row in rows
        if row.get("newer_vintage")
    ]
    yield from _warnings("A newer vintage covers too little to be shown", newer_vintages)
    trials = [
        f"{row['model']} trial {', '.join(map(str, row['uncounted_trials']))}"
        for row in rows
        if row.get("uncounted_trials")
    ]
    yield from _warnings(
        "Begun beyond the configured trials, so not counted until as complete as these", trials
    )


def _models(rows: Rows, board_rows: Rows) -> list[str]:
    """Return the names of the models in rows, each with its judge if the board has several."""
    if len({row["judge_config"] for row in board_rows}) == 1:
        return [row["model"] for row in rows]
    return [f"{row['model']} ({row['judge_config']})" for row in rows]


_SMALL_MARKS = {
    "is_small": "ci_low",
    "is_critical_small": "critical_met_ci_low",
    "is_mistake_small": "mistake_ci_low",
}
"""Column that is true for a figure on few tasks -> the lower end of the figure's interval."""
_SUBSETS = {
    "full": "full: all tasks of the split",
    "official hard": "official hard: all tasks of a split that the data set itself calls hard",
    "hard": "hard: those in your latest hard subset (`prbench select-hard`)",
}
"""Label of the breakdown `subset` -> its meaning."""


def terminal_notes(job: Job, rows: Rows) -> list[str]:
    """Return the lines below a leaderboard in a terminal.

    These are notices, and facts that a report shows elsewhere.
    """
    lines = [notice.text for notice in board_notices(job, rows)]
    unbiased_scores = _unbiased_scores(rows)
    if unbiased_scores:
        lines.append(f"Without the bias of stopping: {', '.join(unbiased_scores)}")
    unjudged = [row for row in rows if row.get("is_judged") is False]
    if unjudged:
        lines.append(f"Not judged on a split by this judge: {list_text(_models(unjudged, rows))}")
    lines += _label_notes(rows)
    if "n_tasks_ranked" in rows[0]:
        lines += rank_notes(rows)
    if any(_is_clipped(row) for row in rows):
        lines.append(
            "A mean below 0 is shown as 0; ranks and `prbench diff` compare the unclipped means."
        )
    if any(_lacks_interval(row) for row in rows):
        lines.append(
            f"No interval: fewer than {FEWEST_DIFFERING} tasks differ from the most common value."
        )
    return lines


def _unbiased_scores(rows: Rows) -> list[str]:
    """Return the names of models with their scores without the bias of stopping.

    A score names its split if there are several.
    """
    has_splits = len(grouped(rows, "split")) > 1
    scores = []
    for row in rows:
        score = row.get("unbiased_mean_score")
        if score is not None:
            (name,) = _models([row], rows)
            split = f" on {row['split']}" if has_splits else ""
            scores.append(f"{name}{split} {score:.3f}")
    return scores


def _label_notes(rows: Rows) -> Iterator[str]:
    """Yield the meanings of labels, and a note on labels from a model."""
    labels = {row.get("label") for row in rows} & _SUBSETS.keys()
    for label, meaning in _SUBSETS.items():
        if label in labels:
            yield meaning
    if labels and "hard" not in labels:
        yield "No hard subset of your own is selected yet; `prbench select-hard` selects one."
    if any(row.get("n_tasks_annotated") for row in rows):
        is_all = all(row["n_tasks_annotated"] == row["n_tasks_wanted"] for row in rows)
        yield (
            f"{'All' if is_all else 'Some'} labels come from a model (`prbench annotate`), because"
            " the data set gives none: see the table labelled_tasks."
        )


def _is_clipped(row: Row) -> bool:
    """Return whether a mean or an end of its interval is shown as 0 instead."""
    for name in ("mean_score", "ci_low", "ci_high"):
        unclipped = row.get(f"raw_{name}")
        if unclipped is not None and unclipped < row[name]:
            return True
    return False


def _lacks_interval(row: Row) -> bool:
    """Return whether an interval is missing, because too few tasks differ."""
    return any(row.get(is_small) and row[low] is None for is_small, low in _SMALL_MARKS.items())


def _responses(scope: Scope) -> Iterator[Notice]:
    """Yield notices on models with many failed responses or without scores."""
    rows = scope.rows("figures/overview/response_counts")
    unjudged = [
        row["model"] for row in rows if not row["n_judged"] and row["n_failed"] < row["n_responses"]
    ]
    if not rows:
        yield Notice(
            "warn", "There are no responses yet, so there is nothing to rank.", "data.html"
        )
    elif unjudged and not any(row["n_judged"] for row in rows):
        text = "No response has been judged yet, so there are no scores; run `prbench judge`."
        yield Notice("bad", text, "tasks.html")
    elif unjudged:
        yield Notice(
            "warn", f"Not judged yet, so without scores: {list_text(unjudged)}.", "tasks.html"
        )
    for row in rows:
        if row["n_failed"] > _GRAVE_SHARE * row["n_responses"]:
            text = (
                f"{row['n_failed']:,} of {counted(row['n_responses'], 'response')} of"
                f" {row['model']} failed ({_words(row['causes'])})."
            )
            yield Notice("bad", text, "length-and-cost.html#response_tokens")


def _verdicts(scope: Scope) -> Iterator[Notice]:
    """Yield notices on judges with many failed verdicts."""
    for grader, rows in grouped(scope.rows("figures/judges/judge_failures"), "grader").items():
        failures = [row for row in rows if row["is_failure"]]
        n_failed = sum(row["n"] for row in failures)
        n_verdicts = rows[0]["n_verdicts"]
        if n_failed > _GRAVE_SHARE * n_verdicts:
            consequence = "its scores are based on the rest"
            if n_failed == n_verdicts:
                consequence = "there are no scores"
            causes = _words(row["status"] for row in failures)
            text = (
                f"{n_failed:,} of {counted(n_verdicts, 'verdict')} of {grader} failed ({causes}):"
                f" {consequence}."
            )
            yield Notice("bad", text, "judges.html#judge_failures")


def _changes(scope: Scope) -> Iterator[Notice]:
    """Yield notices on judges that drifted, and on models whose scores fell or rose."""
    for row in scope.rows("figures/overview/drifted"):
        text = (
            f"{row['judge']} has drifted: in {row['night']} only {row['agreement']:.1%} of its"
            " verdicts on the control set were the same as at first, so score changes of that"
            f" night may come from the judge{people_clause(row)}."
        )
        yield Notice("bad", text, "judges.html#judge_drift")
    changes: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in scope.rows("figures/overview/changes"):
        if row["is_significant"] and row["judge_config"] == scope.main:
            verb = "fell" if row["difference"] < 0 else "rose"
            changes[row["model"], verb, row["earlier"]].append(
                f"by {abs(row['difference']):.3f} on {row['split']} "
                f"(corrected p {row['p_adjusted']:.4f}, {counted(row['n_tasks'], 'task')})"
            )
    for (model, verb, earlier), texts in changes.items():
        text = f"{model} {verb} since {earlier} {list_text(texts)}."
        yield Notice("bad" if verb == "fell" else "good", text, "#changes")


def _quality(scope: Scope) -> Iterator[Notice]:
    (row,) = scope.rows("figures/overview/facts")
    if row["n_refused"]:
        text = f"{counted(row['n_refused'], 'task')} refused and left out of all scores."
        yield Notice("warn", text, "data.html")
    checks = scope.rows("figures/quality/quality")
    failed = [check for check in checks if check["outcome"] == "failed"]
    problems = [check for check in failed if check["policy"] != "warn"]
    warnings = [check for check in failed if check["policy"] == "warn"]
    yield from _failed_checks("bad", "policy fail or quarantine", problems)
    yield from _failed_checks("warn", "warnings", warnings)


def _failed_checks(level: Level, policy: str, rows: Rows) -> Iterator[Notice]:
    names = [f"{row['check_name']} ({row['n_failed']} of {row['n_evaluated']})" for row in rows]
    if names:
        text = f"Failed data checks ({policy}), {counted(len(names), 'check')}: {list_text(names)}."
        yield Notice(level, text, "data.html")


def _retirements(scope: Scope) -> Iterator[Notice]:
    """Yield one notice on the models that their providers switch off."""
    today = datetime.now(UTC).date()
    lines = ". ".join(map(str, retirements(scope.job, today)))
    if lines:
        yield Notice("warn", f"{lines}.")


def _words(statuses: Iterable[str]) -> str:
    return list_text(status.replace("_", " ") for status in statuses)
