"""The command `weaknesses`: the capabilities in which a model is weak."""

from typing import TYPE_CHECKING

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json, show_nothing
from flows.cli.compare.figures import is_small, repetition, show_figures
from flows.cli.compare.questions import Records, answer
from tasks.rules.text.characters import visible
from tasks.rules.text.numbers import SMALL_MARK

if TYPE_CHECKING:
    from tasks.config.job import Job


@click.command(cls=Command, epilog=examples(
    "prbench weaknesses gpt-5-high",
    "prbench weaknesses gpt-5-high --than claude-opus",
    "prbench weaknesses gpt-5-high --judge o4-mini --json",
))  # fmt: skip
@click.argument("model", metavar="MODEL")
@click.option("--than", metavar="MODEL", help="Compare with this model.  [default: the model's own other criteria]")
@click.option("-n", "n_examples", type=click.IntRange(min=0), default=2, show_default=True, metavar="N",
              help="Number of example criteria to show for each weakness.")  # fmt: skip
@shared_options(selection=("judge",), output=SHOWS)
def weaknesses(context: Context, model: str, than: str | None, n_examples: int) -> int:
    """Show the capabilities in which a model is weak.

    `prbench capabilities` finds them on one half of the tasks and confirms them on the other; only confirmed ones are
    shown, with the figures of the second half. The score is the share of the criteria of a capability that were handled
    rightly, weighted by their points (a criterion with negative points is handled rightly if it is not met).
    """
    job = context.stored_job(checked=("judge",))
    given = {"model": model, "judges": list(context.arguments.judges)}
    _refuse_unknown(job, (model, *([than] if than else [])))
    found = answer(job, "capabilities/weaknesses", {**given, "than": than})
    nodes = sorted({row["node_id"] for row in found})
    lost = answer(job, "capabilities/examples", {**given, "nodes": nodes, "n_examples": n_examples})
    compared = answer(job, "capabilities/compared", given)
    by_node = {node: [row for row in lost if row["node_id"] == node] for node in nodes}
    if context.as_json:
        show_json({
            "weaknesses": [{**row, "examples": by_node[row["node_id"]]} for row in found], "compared": compared,
        })  # fmt: skip
        return 0
    n_candidates = sum(row["n_candidates"] for row in compared if row["compared_model"] == than)
    beside = f"than {than}" if than else "than in its other criteria"
    if found:
        _show(f"Where {model} does worse {beside}", found, by_node)
    else:
        found_only = f"; {n_candidates} found on one half of the tasks, none confirmed" if n_candidates else ""
        show_nothing(job, f"{model} does not do worse {beside} in any capability, as far as is known{found_only}.")
    _show_others(model, than, compared)
    return 0


def _refuse_unknown(job: "Job", models: tuple[str, ...]) -> None:
    from tasks.rules.errors import UsageError

    known = [row["model"] for row in answer(job, "capabilities/models", {})]
    if not known:
        raise UsageError("no scores in capabilities are stored yet; `prbench capabilities` makes them")
    if len(set(models)) < len(models):
        raise UsageError(f"--than {models[0]}: name another model than {models[0]} itself")
    for model in models:
        if model not in known:
            raise UsageError(f"{model}: no such model; with scores in capabilities: {', '.join(known)}")


def _show(title: str, found: Records, by_node: dict[str, Records]) -> None:
    found = [{**row, "p_confirmed": f"{row['p_confirmed']:.2g}"} for row in found]
    show_figures(title, found, {
        "capability": "name", "within": "parent_name", "field": "field", "score": "value", "beside": "compared_value",
        "difference": ("gap", "gap_ci_low", "gap_ci_high"), "p corrected": "p_confirmed", "tasks": "n_tasks",
        "judge": "judge", **repetition(found),
    })  # fmt: skip
    for node, criteria in by_node.items():
        if criteria:
            name = next(row["name"] for row in found if row["node_id"] == node)
            click.echo(f"\nNot handled rightly in {visible(name or '(no name)')}:")
        for row in criteria:
            click.echo(f"  {visible(row['task_id'])}  {row['weight']:+g}  {visible(' '.join(row['title'].split()))}")
    if any(is_small(row) for row in found):
        click.echo(f"\n{SMALL_MARK} fewer than 50 tasks, or few that differ: the interval may be too narrow")


def _show_others(model: str, than: str | None, compared: Records) -> None:
    others = [row for row in compared if row["n_confirmed"] and row["compared_model"] != than]
    for row in others:
        other, n = row["compared_model"], row["n_confirmed"]
        worse = f"Worse in {n} {'capability' if n == 1 else 'capabilities'}"
        if other is None:
            click.echo(f"\n{worse} than in its other criteria: prbench weaknesses {model}")
        else:
            click.echo(f"\n{worse} than {other}: prbench weaknesses {model} --than {other}")
