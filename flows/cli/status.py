"""The command `status`: coverage, spend, runs, and the disk space in use."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from flows.cli.figures import present, show_parts
from flows.cli.options import EVALUATED, SHOWS, Context, command
from flows.run.arguments import Arguments

if TYPE_CHECKING:
    from tasks.config.job import Job

_LAST_DAYS = 7


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
    if since is not None and not (with_spend or with_runs):
        raise click.UsageError("--since is for --spend and --runs; add one of them")
    if with_spend or with_runs or with_disk:
        # They are those of the whole warehouse, and partly of what is not published yet.
        for option in EVALUATED:
            if getattr(context.arguments, f"{option}s" if option in {"split", "model", "judge"} else option):
                raise click.UsageError(f"--{option} does not apply to --spend, --runs and --disk; leave it out")
        from tasks.figures.shown.operations import DISK, LATEST, SPENT

        asked = {"spend": with_spend and SPENT, "runs": with_runs and LATEST, "disk": with_disk and DISK}
        figures = {key: figure for key, figure in asked.items() if figure}
        present(context, figures, {key: figure.of_job(context.job, since=since) for key, figure in figures.items()})
        return 0
    job = context.stored_job(checked=("split", "model", "judge"))
    # Of other data than the configured, what is configured is not wanted.
    is_other = job is not context.job
    _notice_vintages(context.arguments, job, is_other=is_other)
    return show_parts(
        context, job, {"": "status"}, {"only_stored": is_other},
        nothing="No response is wanted: no model is configured or imported.", after=lambda _: list(_lines(job)),
    )  # fmt: skip


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


def _lines(job: "Job") -> Iterator[str]:
    """The folder of the data, what was spent lately, and who works on it."""
    from tasks.maintain.upkeep import spent
    from tasks.run.run_context import sender_states
    from warehouse import Warehouse

    yield f"Warehouse: {job.warehouse} ({job.warehouse_source})"
    now = datetime.now(UTC)
    week = spent(job, now - timedelta(days=_LAST_DAYS - 1))
    today = [row for row in week if row["day"] == now.date().isoformat()]
    yield f"Spent: {_sum(today)} today (UTC), {_sum(week)} in the last {_LAST_DAYS} days; --spend shows details"
    states = sender_states(Warehouse(job.warehouse))
    for node in sorted({state["node"] for state in states}):
        of_node = [state for state in states if state["node"] == node]
        in_hand, rate = (sum(state[name] for state in of_node) for name in ("n_in_hand", "calls_per_s"))
        each = ", ".join(f"{state['calls_per_s']:.1f}" for state in of_node)
        yield f"Senders on {node}: {len(of_node)}, {rate:.1f} calls/s ({each}), {in_hand} calls in flight"
    if host := Warehouse(job.warehouse).elsewhere():
        yield f"Writes here: {host}, or did so until it failed; its costs are as of its last publishing"


def _sum(rows: Sequence[dict[str, Any]]) -> str:
    cost_usd, n_unpriced = sum(row["cost_usd"] or 0.0 for row in rows), sum(row["unpriced_calls"] for row in rows)
    unknown = f"{n_unpriced} calls of unknown price" if n_unpriced else ""
    return " and ".join(part for part in (f"{cost_usd:.4g} USD" if cost_usd or not unknown else "", unknown) if part)
