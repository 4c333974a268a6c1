"""The command `cascade`: when to ask a strong judge after a cheap one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from flows.cli.figures import show_columns
from flows.cli.options import SHOWS, Context, command
from flows.cli.output import show_json

if TYPE_CHECKING:
    from tasks.cascade import CascadeAnswer
    from tasks.rules.cascades.evaluation import Bound, Evaluation, Figures

_MEASURES = ("agreement", "kappa", "ranking")


class _BoundType(click.ParamType[tuple[str, float]]):
    """`agreement=0.95`, as a measure and a number."""

    name = "bound"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        measure, _, number = str(value).partition("=")
        try:
            least = float(number)
        except ValueError:
            least = float("nan")
        if measure not in _MEASURES or not -1.0 <= least <= 1.0:
            known = ", ".join(f"{each}=NUMBER" for each in _MEASURES)
            self.fail(f"{value!r} is no bound; write {known}, with a number up to 1", param, ctx)
        return measure, least


@command("split", output=SHOWS)
@click.argument("cheap", metavar="CHEAP")
@click.argument("strong", metavar="STRONG")
@click.option("--bound", type=_BoundType(), metavar="MEASURE=NUMBER",
              help="Pick the cheapest rule whose agreement, kappa or ranking (Kendall's tau) with STRONG is at least "
              "this, by the low end of its interval.")  # fmt: skip
@click.option("--all", "is_all", is_flag=True, help="Show all rules, not only those that no other rule beats.")
def cascade(context: Context, cheap: str, strong: str, bound: tuple[str, float] | None, is_all: bool) -> int:
    """Evaluate when to ask a strong judge after a cheap one.

    From stored verdicts of both, imported ones too, `prbench cascade` works out what each rule would cost and how far
    its verdicts would agree with those of STRONG alone. A rule escalates a criterion where repetitions of CHEAP
    disagree, by its weight, its category, or the confidence of CHEAP, or by several of these.

    Rules are made and chosen on one half of the tasks; the figures shown come from the other half. With --bound, the
    cheapest rule within it is picked and shown as configuration. The next report shows the evaluation too.

    Examples:
      prbench cascade gpt-4.1-mini o4-mini
      prbench cascade gpt-4.1-mini o4-mini --bound agreement=0.95
      prbench cascade gpt-4.1-mini o4-mini --bound kappa=0.8 --split finance --all
      prbench cascade gpt-4.1-mini o4-mini --json
    """
    from tasks.cascade import evaluated, store
    from tasks.rules.cascades.evaluation import Bound
    from tasks.rules.errors import UsageError
    from warehouse import Warehouse

    if cheap == strong:
        raise UsageError(f"{cheap}: is given as both judges; name a cheap and a strong one")
    job = context.stored_job(checked=("split",))
    about = {"benchmark": job.settings.benchmark, "revision": job.data.revision}
    given = about | {"cheap": cheap, "strong": strong, "splits": list(context.arguments.splits)}
    with Warehouse(job.warehouse).reader() as reader:
        found = evaluated(reader, given, Bound(*bound) if bound else None)
    store(job.warehouse, given, found)
    if context.as_json:
        show_json(_as_json(found, cheap, strong))
    else:
        _show(found, cheap, strong, is_all=is_all)
    return 0


def _row(evaluation: "Evaluation", figures: "Figures") -> dict[str, Any]:
    """A rule with its figures on one half, in flat columns."""
    ranking, flat = figures.ranking, {"rule": evaluation.candidate.name}
    flat |= {name: getattr(figures, name) for name in ("n", "n_tasks", "differing", "strong_calls", "cheap_calls")}
    for name in ("share", "cost_usd", "agreement", "kappa", "macro_f1", "tau", "change"):
        value, low, high = getattr(ranking if name in {"tau", "change"} else figures, name)
        flat |= {name: value, f"{name}_ci_low": low, f"{name}_ci_high": high}
    few = {f"{name}_is_small": ranking.is_small for name in ("tau", "change")}
    return {**flat, "changed": ranking.changed, "n_responses": ranking.n_responses, "is_small": figures.is_small, **few}


def _when(evaluation: "Evaluation") -> dict[str, Any] | None:
    """The conditions of a rule as the configuration has them."""
    when = evaluation.candidate.when
    if when is None:
        return None
    given = {
        "disagreement": when.disagreement or None, "weight_above": when.weight_above,
        "categories": list(when.categories) or None, "confidence_below": when.confidence_below,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def _as_json(found: "CascadeAnswer", cheap: str, strong: str) -> dict[str, Any]:
    stored = found.stored

    def shown(each: "Evaluation") -> dict[str, Any]:
        return {
            "rule": each.candidate.name, "when": _when(each), "is_on_front": each in found.front,
            "is_within_bound": None if found.bound is None else found.bound.is_kept(each),
            "chosen_on": _row(each, each.chosen_on), "held_out": _row(each, each.held_out),
        }  # fmt: skip

    return {
        "cheap": cheap, "strong": strong, "n_tasks": len(stored.paired.tasks), "n_criteria": len(stored.paired.strong),
        "n_cheap_failed": stored.n_first_failed, "n_strong_failed": stored.n_strong_failed,
        "n_without_second": stored.n_without_second, "has_repetitions": stored.has_repetitions,
        "has_confidence": stored.has_confidence, "notes": [*filter(None, [found.few_tasks]), *stored.notes],
        "bound": None if found.bound is None else {found.bound.measure: found.bound.least},
        "picked": None if found.picked is None else shown(found.picked),
        "configuration": _yaml(found, cheap, strong), "rules": [shown(each) for each in found.evaluations],
    }  # fmt: skip


def _yaml(found: "CascadeAnswer", cheap: str, strong: str) -> str | None:
    """The picked rule as it is configured; None where a single judge is picked."""
    import yaml

    if found.picked is None or not (when := _when(found.picked)):
        return None
    entry = {"label": f"{cheap}-then-{strong}", "cascade": {"first": cheap, "then": strong, "when": when}}
    return str(yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=100))


def _show(found: "CascadeAnswer", cheap: str, strong: str, *, is_all: bool) -> None:
    shown = found.evaluations if is_all else found.front
    rows = [_row(each, each.held_out) for each in shown]
    measure = "agreement" if found.bound is None else found.bound.measure
    title = "All rules" if is_all else f"Rules that no other rule beats in cost and {measure}"
    _table(rows, f"{title}: figures on the tasks that were held out")
    click.echo(f"{cheap} first, then {strong}; figures are against {strong} alone.")
    for line in _notes(found, cheap, strong):
        click.echo(line)
    if found.picked is not None and found.bound is not None:
        _show_picked(found, found.picked, found.bound, cheap, strong)
    else:
        click.echo("`--bound agreement=0.95` picks the cheapest rule within a bound.")


def _table(rows: Sequence[dict[str, Any]], title: str) -> None:
    from tasks.figures.columns import Column, columns, interval

    show_columns((
        *columns("rule"), *interval("share", "Escalated", "share", "share"),
        *interval("cost_usd", "USD for 1,000 verdicts", "usd"), *columns("strong_calls cheap_calls"),
        *interval("agreement", "Agreement"), *interval("kappa", "Kappa"), *interval("tau", "Tau of the ranking"),
        *interval("change", "Largest change of a score", "signed"), Column("changed", "of", "text"),
        *columns("n_responses is_small", n_responses="Responses ranked"),
    ), rows, title)  # fmt: skip


def _notes(found: "CascadeAnswer", cheap: str, strong: str) -> list[str]:
    stored = found.stored
    halves = found.evaluations[0]
    lines = [
        f"{halves.chosen_on.n_tasks} tasks to choose rules on, {halves.held_out.n_tasks} held out; "
        f"{len(stored.paired.strong)} criteria that {strong} decided."
    ]
    lines += [found.few_tasks] if found.few_tasks else []
    if stored.n_first_failed:
        lines.append(f"{cheap} failed on {stored.n_first_failed} of them: each rule escalates these; for {cheap} alone "
                     "they count as not agreeing.")  # fmt: skip
    left_out = [
        (stored.n_strong_failed, f"that {strong} failed on"),
        (stored.n_without_second, f"without a second verdict of {cheap}, from rules with disagreement"),
    ]
    lines += [f"Left out: {n} criteria {why}." for n, why in left_out if n]
    if not stored.has_repetitions:
        lines.append(f"{cheap} has one verdict a criterion, so disagreement of repetitions is not tried.")
    if not stored.has_confidence:
        lines.append(f"{cheap} has no stored confidence (`logprobs: true` asks for it), so that is not tried.")
    if stored.costs.cheap_usd is None or stored.costs.strong_usd is None:
        lines.append("The cost of the judges is not known, so rules are ordered by calls of the strong judge.")
    return [*lines, *(f"{note}." for note in stored.notes)]


def _show_picked(found: "CascadeAnswer", picked: "Evaluation", bound: "Bound", cheap: str, strong: str) -> None:
    click.echo("")
    kept = f"{bound.measure} at least {bound.least:g}"
    if picked.candidate.when is None:
        click.echo(f"No rule keeps {kept}, by the low end of its interval, and costs less than {strong} alone.")
        return
    title = f"Picked: the cheapest rule with {kept}; figures on the tasks that were held out"
    _table([_row(picked, picked.held_out)], title)
    configuration = _yaml(found, cheap, strong)
    if configuration is None:
        click.echo(f"{cheap} alone keeps the bound; no cascade is needed.")
        return
    when = picked.candidate.when
    asked = {"trials: 2": when.disagreement, "logprobs: true": when.has_confidence}
    needs = " and ".join(f"`{setting}`" for setting, is_needed in asked.items() if is_needed)
    with_these = f" ({cheap} with {needs})" if needs else ""
    click.echo(f"Under `judges:` in prbench.yaml, beside both judges{with_these}:")
    click.echo(configuration, nl=False)
