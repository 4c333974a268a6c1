"""The command `status`: coverage, spend, runs, and the disk space in use."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import EVALUATED, SHOWS, Context, command
from flows.cli.output import in_words, show_json, show_nothing, show_rows, show_table
from flows.run.arguments import Arguments
from tasks.rules.text.numbers import coverage_text

if TYPE_CHECKING:
    from tasks.config.job import Job

_SPAN = re.compile(r"([1-9]\d{0,4})([dh])")
_LAST_DAYS = 7
_MOMENTS = ("started_at", "ended_at")
_TITLES = {
    "spend": "Spend, including discarded attempts, without calls of unknown price",
    "runs": "Runs, latest first",
    "disk": "Disk space",
}
_MATRIX = [
    "model", "vintage", "trial", "judge", "judge_trial", "wanted", "done", "missing", "skipped", "failed", "share",
    "causes",
]  # fmt: skip


@command(*EVALUATED, output=SHOWS)
@click.option("--spend", "with_spend", is_flag=True, help="Show the spend by day (UTC) and model.")
@click.option("--runs", "with_runs", is_flag=True, help="Show the latest runs and what they made.")
@click.option("--disk", "with_disk", is_flag=True, help="Show the disk space in use.")
@click.option("--since", metavar="WHEN", help="For --spend and --runs: 7d, 24h, or a date (UTC) such as 2026-11-01.")
def status(context: Context, with_spend: bool, with_runs: bool, with_disk: bool, since: str | None) -> int:
    """Show what is done, failed and missing.

    The table has one row for each model, trial and judge, with the causes of failures. Rows with `(responses)` in the
    column `judge` count the model's responses, the others its verdicts. All tasks of the chosen splits are wanted,
    except those that are skipped because the comparisons of a model are settled (`stopping`). Coverage is done /
    wanted. --spend, --runs and --disk show other tables instead.

    Examples:
      prbench status
      prbench status --night 2026-11-22 --json
      prbench status --spend --since 7d
      prbench status --runs --disk
    """
    from tasks.maintain.upkeep import disk_use, spent

    if since is not None and not (with_spend or with_runs):
        raise click.UsageError("--since is for --spend and --runs; add one of them")
    moment = None if since is None else since_moment(since, datetime.now(UTC))
    if not (with_spend or with_runs or with_disk):
        return _matrix(context)
    _refuse_selection(context.arguments)
    job = context.job
    tables: dict[str, list[dict[str, Any]]] = {}
    if with_spend:
        tables["spend"] = spent(job, moment)
    if with_runs:
        tables["runs"] = _runs(job, moment)
    if with_disk:
        tables["disk"] = disk_use(job)
    if context.as_json:
        show_json(tables)
    else:
        _show_tables(tables)
    return 0


def _refuse_selection(given: Arguments) -> None:
    """Refuse options without effect: spend, runs and disk space are those of the whole warehouse."""
    for option in EVALUATED:
        if getattr(given, f"{option}s" if option in {"split", "model", "judge"} else option):
            raise click.UsageError(f"--{option} does not apply to --spend, --runs and --disk; leave it out")


def _show_tables(tables: dict[str, list[dict[str, Any]]]) -> None:
    for name, rows in tables.items():
        if rows:
            show_table(in_words(list(rows[0])), [tuple(row.values()) for row in rows], title=_TITLES[name])
        else:
            click.echo(f"{_TITLES[name]}: nothing yet")


def since_moment(text: str, now: datetime) -> datetime:
    """The moment that `7d`, `24h` or a date means; a date or time without a zone is in UTC.

    Raises:
        click.UsageError: it is none of these.
    """
    span = _SPAN.fullmatch(text)
    if span:
        return now - (timedelta(days=int(span[1])) if span[2] == "d" else timedelta(hours=int(span[1])))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(f"--since {text}: give 7d, 24h, or a date such as 2026-11-01") from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _matrix(context: Context) -> int:
    from tasks.run.coverage import coverage
    from warehouse import Warehouse

    job = context.stored_job(checked=("split", "model", "judge"))
    # Of other data than the configured, what is configured is not wanted.
    is_other = job is not context.job
    cells = coverage(job, only_stored=is_other)
    _notice_vintages(context.arguments, job, is_other=is_other)
    rows = [
        (
            cell.model, cell.vintage, cell.trial, cell.judge or "(responses)", cell.judge_trial, cell.wanted, cell.done,
            cell.missing, cell.skipped, sum(cell.failures.values()),
            cell.share if context.as_json else coverage_text(cell.share),
            ", ".join(f"{number} {cause}" for cause, number in sorted(cell.failures.items())),
        )
        for cell in cells
    ]  # fmt: skip
    if context.as_json or rows:
        show_rows(context.as_json, _MATRIX, rows)
    else:
        show_nothing(job, "No response is wanted: no model is configured or imported.")
    if not context.as_json:
        click.echo(f"Warehouse: {job.warehouse} ({job.warehouse_source})")
        click.echo(_spend_line(job))
        for line in _sender_lines(job):
            click.echo(line)
        if host := Warehouse(job.warehouse).elsewhere():
            click.echo(f"Writes here: {host}, or did so until it failed; its costs are as of its last publishing")
    return 0


def _notice_vintages(given: Arguments, job: "Job", *, is_other: bool) -> None:
    """Say so where --vintage or --night has no effect on what is shown."""
    from tasks.console import notice
    from tasks.run.stored_data import nothing_of_vintage

    for option, label in (("vintage", given.vintage), ("night", given.night)):
        remark = None if label is None else nothing_of_vintage(job, option, label)
        if remark is not None:
            notice(remark)
    if given.night and not is_other and not any(model.resample == "nightly" for model in job.settings.models):
        notice(f"--night {given.night}: no chosen model has `resample: nightly`, so it changes nothing")


def _runs(job: "Job", since: datetime | None) -> list[dict[str, Any]]:
    from tasks.maintain.upkeep import latest_runs

    return [
        {**row, **{name: row[name] and f"{row[name].astimezone(UTC):%Y-%m-%d %H:%M:%S}" for name in _MOMENTS}}
        for row in latest_runs(job, since)
    ]


def _sender_lines(job: "Job") -> Iterator[str]:
    """The senders of runs in progress, by node."""
    from tasks.run.run_context import sender_states
    from warehouse import Warehouse

    states = sender_states(Warehouse(job.warehouse))
    for node in sorted({state["node"] for state in states}):
        of_node = [state for state in states if state["node"] == node]
        in_hand, rate = (sum(state[name] for state in of_node) for name in ("n_in_hand", "calls_per_s"))
        each = ", ".join(f"{state['calls_per_s']:.1f}" for state in of_node)
        yield f"Senders on {node}: {len(of_node)}, {rate:.1f} calls/s ({each}), {in_hand} calls in flight"


def _spend_line(job: "Job") -> str:
    from tasks.maintain.upkeep import spent

    now = datetime.now(UTC)
    week = spent(job, now - timedelta(days=_LAST_DAYS - 1))
    today = [row for row in week if row["day"] == now.date().isoformat()]
    return f"Spent: {_sum(today)} today (UTC), {_sum(week)} in the last {_LAST_DAYS} days; --spend shows details"


def _sum(rows: Sequence[dict[str, Any]]) -> str:
    cost_usd, n_unpriced = sum(row["cost_usd"] or 0.0 for row in rows), sum(row["unpriced_calls"] for row in rows)
    unknown = f"{n_unpriced} calls of unknown price" if n_unpriced else ""
    return " and ".join(part for part in (f"{cost_usd:.4g} USD" if cost_usd or not unknown else "", unknown) if part)
