"""The commands that look behind the leaderboard: graders, criteria, lengths."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json, show_table

if TYPE_CHECKING:
    from warehouse import Reader

_CUTS = ("category", "severity", "field", "model", "length")
_KINDS = {
    "never-met": "that no complete response meets",
    "always-met": "that every complete response meets",
    "disagreed": "that graders disagree on most",
    "suspect": "that go against the rest of their task: candidates for a wrong weight or sign",
}
_SMALL_MARK = "°"
_NAMES = {
    "graders": ("judge", "select grader from graders where benchmark = ?"),
    "people": ("people", "select grader from graders where benchmark = ?"),
    "judges": ("judge", "select distinct judge from staging.model_runs where benchmark = ?"),
    "models": ("model", "select distinct model from staging.model_runs where benchmark = ?"),
    "splits": ("split", "select distinct split from staging.task_set_members where not is_own_hard and benchmark = ?"),
}
"""Lists of names that questions take, with the option they come from and what the benchmark has."""
Records = list[dict[str, Any]]


@click.command(epilog=examples(
    "prbench judges", "prbench judges --judge expert-1 --by category", "prbench judges --json",
    "prbench judges --people expert-1 --people expert-2",
))  # fmt: skip
@click.option("--by", type=click.Choice(_CUTS), help="One row a pair of graders and label.")
@click.option("--people", multiple=True, metavar="GRADER", help="Who the people are (again for more).")
@shared_options
def judges(context: Context, by: str | None, people: tuple[str, ...]) -> int:
    """Compare graders: judges, imported labels of people, repetitions, majorities. `--judge` names one to compare.

    With `--people` each other grader is compared with all of them: their decisions are pooled, so a person counts by
    the number of criteria. The mean of the pairs (table 3 of the paper) stands beside it.
    """
    if people:
        return _against_people(context, by, people)
    from tasks.rules.statistics import SMALL

    breakdown = {"breakdown": by or "all"}
    pairs = _asked(context, "judges", breakdown | {"graders": list(context.asked.judges)})
    sets = _asked(context, "reliability", breakdown) if by in {None, "category", "severity"} else []
    leniency = [] if by else _asked(context, "leniency", {})
    if context.as_json:
        show_json({"pairs": pairs, "sets": sets, "leniency": leniency})
        return 0
    if not pairs:
        click.echo("No criterion of a response was decided by two graders yet.")
        return 0
    label = {by: "label"} if by else {}
    apart = [pair for pair in pairs if not pair["is_member"]]
    _show("Pairs of graders (a majority and its own voters: --json)", apart, {
        "a": "grader_a", "b": "grader_b", **label, "kappa": ("kappa", "kappa_ci_low", "kappa_ci_high"),
        "macro-F1": "macro_f1", "mean of tasks": "macro_f1_task_mean", "agreement": "agreement", "n": "n",
        "tasks": "n_tasks",
        "met by a": "met_share_a", "met by b": "met_share_b",
    })  # fmt: skip
    _show("Sets of graders", sets, {
        "set": "grader_set", **label, "graders": "n_graders",
        "Krippendorff's alpha": ("alpha", "alpha_ci_low", "alpha_ci_high"), "unanimous": "unanimous_share", "n": "n",
    })  # fmt: skip
    _show("Leniency: share met, less that of the others", leniency, {
        "grader": "grader", "kind": "kind", "leniency": "leniency", "met": "met_share", "others": "others_met_share",
        "n": "n",
    })  # fmt: skip
    if any(pair["agreement"] is None for pair in apart):
        click.echo("What has no figures is newer than the last `prbench aggregate`, which measures it.")
    if any(pair["n_tasks"] < SMALL for pair in apart):
        click.echo(f"{_SMALL_MARK} fewer than {SMALL} tasks: the interval may be too narrow")
    return 0


def _against_people(context: Context, by: str | None, people: tuple[str, ...]) -> int:
    from tasks.compare.people import against_people

    asked = {"breakdown": by or "all", "people": list(people), "graders": list(context.asked.judges)}
    records = _asked(context, "people", asked, reading=against_people)
    if context.as_json:
        show_json(records)
        return 0
    if not records:
        click.echo(f"No criterion of a response was decided by {' or '.join(people)} and another grader yet.")
        return 0
    label = {by: "label"} if by else {}
    _show(f"Agreement with {', '.join(people)}, their decisions pooled", records, {
        "grader": "grader", **label, "kappa": ("kappa", "kappa_ci_low", "kappa_ci_high"),
        "macro-F1": ("macro_f1", "macro_f1_ci_low", "macro_f1_ci_high"),
        "agreement": ("agreement", "agreement_ci_low", "agreement_ci_high"), "people": "n_people", "n": "n",
        "tasks": "n_tasks", "macro-F1, mean of tasks": "macro_f1_task_mean",
        "kappa, mean of pairs": "kappa_pair_mean", "macro-F1, mean of pairs": "macro_f1_pair_mean",
    })  # fmt: skip
    if any(_is_small(record) for record in records):
        click.echo(_small_legend())
    return 0


@click.command(epilog=examples("prbench criteria suspect", "prbench criteria never-met -n 50 --json"))
@click.argument("which", type=click.Choice(list(_KINDS)))
@click.option("-n", "n_rows", type=click.IntRange(min=1), default=20, help="How many.  [default: 20]")
@shared_options
def criteria(context: Context, which: str, n_rows: int) -> int:
    """Find criteria worth a second look: never-met, always-met, disagreed, suspect."""
    asked = {
        "which": which, "n_rows": n_rows, "judges": list(context.asked.judges), "vintage": context.asked.vintage,
    }  # fmt: skip
    records = _asked(context, "criteria", asked)
    if context.as_json:
        show_json(records)
        return 0
    if not records:
        click.echo(f"There are no criteria {_KINDS[which]}.")
        return 0
    judging = {} if which == "disagreed" else {"judge": "judge", **_repetition(records)}
    _show(f"Criteria {_KINDS[which]}", records, {
        "task": "task_id", "category": "category", "weight": "weight", "met": "met_share", "answers": "n_responses",
        "models": "n_models", "with the rest": "rest_correlation", "at most": "rest_correlation_high",
        "disagreement": "disagreement", **judging, "title": "title",
    })  # fmt: skip
    if which == "suspect" and not any((r["rest_correlation_high"] or 0) < 0 for r in records):
        click.echo("None of them clearly (`at most` below 0, from 4 models on): this may be chance.")
    return 0


@click.command(epilog=examples("prbench lengths", "prbench lengths --hard --model gpt-5-high"))
@click.option("--hard", "is_hard", is_flag=True, help="On the latest own hard selection.")
@click.option("--score", metavar="NAME", help="Which score.  [default: the benchmark's main one]")
@shared_options
def lengths(context: Context, is_hard: bool, score: str | None) -> int:
    """Show how length goes with score: Spearman's rank correlation (figure 7 of the paper)."""
    asked = {
        "splits": list(context.job.settings.dataset.splits), "models": list(context.asked.models),
        "judges": list(context.asked.judges), "vintage": context.asked.vintage, "is_hard": is_hard,
    }  # fmt: skip
    records = _asked(context, "lengths", asked, score=score)
    if context.as_json:
        show_json(records)
        return 0
    if not records:
        click.echo("No model has a complete task here yet.")
        return 0
    _show("Rank correlation of length and score", records, {
        "split": "split", "model": "model", "length in": "measure",
        "correlation": ("rank_correlation", "ci_low", "ci_high"), "n": "n",
        "judge": "judge", **_repetition(records), "vintage": "vintage",
    })  # fmt: skip
    if any(record["is_small"] and record["rank_correlation"] is not None for record in records):
        click.echo(f"{_SMALL_MARK} fewer than 50 are ranked; fewer than 10 have no interval")
    return 0


def _repetition(records: Records) -> dict[str, str]:
    """The column of the judge's repetition, where there is more than the first."""
    return {"repetition": "judge_trial"} if any(record["judge_trial"] != 1 for record in records) else {}


def _asked(
    context: Context,
    question: str,
    asked: Mapping[str, Any],
    reading: "Callable[[Reader, Mapping[str, Any]], Records] | None" = None,
    **names: str | None,
) -> Records:
    """The answer to a question under sql/questions/ on the job's data-set revision, or what `reading` makes of it."""
    import sql
    from tasks.benchmarks import load_benchmark
    from tasks.rules.errors import UsageError
    from warehouse import Warehouse

    job = context.job
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    given = {**asked, "benchmark": benchmark.name, "revision": data.revision}
    if "score" in names:
        known = [definition.score_name for definition in benchmark.scores]
        given["score"] = names["score"] or benchmark.primary_score.score_name
        if given["score"] not in known:
            raise UsageError(f"--score {given['score']}: {benchmark.name} has {', '.join(known)}")
    with Warehouse(job.warehouse).reader() as reader:
        found = reading(reader, given) if reading else reader.rows(sql.read(f"questions/{question}"), given)
        if not found:
            _refuse_unknown(reader, given)
        return found


def _refuse_unknown(reader: "Reader", given: Mapping[str, Any]) -> None:
    """Tell a name that nothing has from one of which there is nothing to say."""
    from tasks.rules.errors import UsageError

    for names, (option, query) in _NAMES.items():
        known = sorted(name for row in reader.rows(query, [given["benchmark"]]) for name in row.values())
        unknown = [name for name in given.get(names, []) if name not in known]
        if unknown and known:
            raise UsageError(f"--{option} {unknown[0]}: there is none; there are {', '.join(map(str, known))}")


def _show(title: str, records: Records, columns: Mapping[str, str | tuple[str, str, str]]) -> None:
    """A table of some columns under titles of their own; three names are a figure with its interval."""
    if not records:
        return
    used = {name: column for name, column in columns.items() if any(_cell(r, column) is not None for r in records)}
    show_table(list(used), [[_cell(record, column) for column in used.values()] for record in records], title=title)


def _cell(record: Mapping[str, Any], column: str | Sequence[str]) -> Any:
    if isinstance(column, str):
        value = record[column]
        return f"{value:.3f}" if isinstance(value, float) and column != "weight" else value
    value, low, high = (record[name] for name in column)
    if value is None:
        return None
    small = _SMALL_MARK if _is_small(record) else ""
    return f"{value:.3f}{small}" if low is None else f"{value:.3f} ({low:.3f} to {high:.3f}){small}"


def _is_small(record: Mapping[str, Any]) -> bool:
    """Whether a figure rests on too few tasks, by its own word or else by their number."""
    from tasks.rules.statistics import SMALL

    return bool(record.get("is_small", record.get("n_tasks", SMALL) < SMALL))


def _small_legend() -> str:
    from tasks.rules.statistics import FEW_OTHERS, SMALL

    few = f"fewer than {SMALL} tasks, or fewer than {FEW_OTHERS} that differ"
    return f"{_SMALL_MARK} {few}: the interval may be too narrow"


ANALYSIS_COMMANDS = (judges, criteria, lengths)
