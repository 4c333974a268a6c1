"""The commands that show figures; their options are the figures' parameters.

A command names its shared options in `@show_command`, its own ones with click's decorators, and its
help in the docstring. The function refuses options that do not apply, and shows figures; each
option is passed to every figure that has a parameter of its name.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click
from click.core import ParameterSource

from flows.cli.figures import show_parts
from flows.cli.options import Context, number, show_command
from flows.cli.regressions import conclude_diff, reporting_errors_in


@show_command("split", "model", "judge", "vintage-only", "hard", "score")
def lengths(context: Context, **choices: Any) -> None:
    """Show the correlation between response length and score.

    It is Spearman's rank correlation, over the tasks of each model and over the models, with its
    interval (figure 7 of the paper).

    Examples:
      prbench lengths
      prbench lengths --hard --model gpt-5.6-sol-high
    """
    show_parts(
        context,
        context.stored_job(),
        {"": "length_correlations"},
        choices,
        vintage="all",
        empty="No model has a complete task in this selection yet.",
    )


@show_command("judge", "vintage-shown")
@click.argument(
    "which", metavar="KIND", type=click.Choice(["never-met", "always-met", "disagreed", "suspect"])
)
@number("-n n_criteria", 20, "Number of criteria to show.")
def criteria(context: Context, **choices: Any) -> None:
    """Find criteria worth a second look.

    `never-met` criteria are met by no complete response, and `always-met` ones by every one.
    `disagreed` ones are those on which graders disagree most. The points of `suspect` ones
    correlate negatively with the rest of their task, so their weight or sign may be wrong. The
    table also shows their reviews (`prbench reviews`).

    Examples:
      prbench criteria suspect
      prbench criteria never-met -n 50 --json
      prbench criteria disagreed
    """
    show_parts(
        context,
        context.stored_job(),
        {"": "criteria"},
        choices,
        empty="There is no such criterion.",
    )


@show_command("grader")
@click.option(
    "--by",
    "breakdown",
    type=click.Choice(["category", "severity", "field", "model", "length"]),
    help="Break the agreement down.",
)
@click.option(
    "--people",
    multiple=True,
    metavar="GRADER",
    help="Compare all other graders with this person; several people are pooled (repeatable).",
)
def judges(
    context: Context,
    breakdown: str | None,
    graders: tuple[str, ...],
    people: tuple[str, ...],
) -> None:
    """Compare judges with each other and with people.

    A grader is a judge, a person whose labels were imported, one repetition of a judge, or a
    majority of several.

    With --people, every other grader is compared with the pooled decisions of these people, so a
    person with more decisions counts more. The mean over the pairs is shown too, as in table 3 of
    the paper.

    Examples:
      prbench judges
      prbench judges --judge expert-1 --by category
      prbench judges --people expert-1 --people expert-2
      prbench judges --json
    """
    from tasks.run.stored_data import refuse_unknown_graders

    job = context.stored_job()
    refuse_unknown_graders(job, judge=graders, people=people)
    parameters = {
        "breakdown": breakdown or "all",
        "graders": list(graders),
        "people": list(people),
    }
    empty = ""
    if people:
        parts = {"": "people_agreement"}
    else:
        parts = {"pairs": "judge_agreement"}
        if breakdown in {None, "category", "severity"}:
            parts["sets"] = "judge_reliability"
        if not breakdown:
            parts["leniency"] = "judge_leniency"
            empty = "No criterion has two graders' decisions yet."
    show_parts(context, job, parts, parameters, empty=empty)


@show_command()
@number("-n n_criteria", 10, "Number of criteria with objections to show.")
def reviews(context: Context, **choices: Any) -> None:
    """Show the reviews of the rubrics by people and models.

    People's reviews come from `prbench import reviews`, models' from `prbench review`.

    "Agreement" is the share of criteria that people agree with, estimated for all criteria that
    were sampled from. "Reviewers" shows the agreement of reviewers of the same criteria. "Checks"
    shows how many criteria pass each check. "Predictions" shows whether graders, or people,
    disagree more on criteria that fail a check. "Criteria" lists those with the most objections,
    with the reasons.

    Examples:
      prbench reviews
      prbench reviews -n 50
      prbench reviews --json
    """
    from tasks.benchmarks import load_benchmark

    job = context.stored_job()
    reference = load_benchmark(job.benchmark).review_reference
    lines = []
    if reference:
        lines.append(f"The benchmark's paper: {reference.value:.3f} ({reference.source})")
    parts = {
        "agreement": "review_agreement",
        "reviewers": "reviewer_agreement",
        "checks": "review_checks",
        "failures": "review_failures",
        "predictions": "review_predictions",
        "criteria": "review_objections",
    }
    show_parts(
        context,
        job,
        parts,
        choices,
        empty="No criterion has been reviewed yet.",
        lines_after=lambda _: lines,
    )


@show_command("judge")
@click.argument("model", metavar="MODEL")
@click.option(
    "--than",
    metavar="MODEL",
    help="Compare with this model.  [default: the model's own other criteria]",
)
@number("-n n_examples", 2, "Number of example criteria to show for each weakness.", least=0)
def weaknesses(context: Context, model: str, than: str | None, n_examples: int) -> None:
    """Show the capabilities in which a model is weak.

    `prbench capabilities` finds them on one half of the tasks and confirms them on the other; only
    confirmed ones are shown, with the figures of the second half. The score is the share of points
    that a model got right among the criteria of a capability (a criterion with negative points is
    right if it is not met).

    Examples:
      prbench weaknesses gpt-5.6-sol-high
      prbench weaknesses gpt-5.6-sol-high --than claude-opus-5
      prbench weaknesses gpt-5.6-sol-high --judge gpt-5.6-terra --json
    """
    from warehouse import Warehouse

    job = context.stored_job(model=[model, than] if than else [model])
    with Warehouse(job.warehouse).reader() as reader:
        judge_rows = reader.select(
            "weaknesses",
            "distinct judge",
            benchmark=job.benchmark,
            model=model,
        )
    # Without --judge, all judges with weaknesses, people included.
    judge_labels = job.named_judges or tuple(row["judge"] for row in judge_rows)
    parts = {
        "weaknesses": "weaknesses",
        "examples": "weakness_examples",
        "compared": "weakness_candidates",
    }
    parameters = {
        "model": model,
        "than": than,
        "n_examples": n_examples,
    }
    show_parts(
        context,
        job.model_copy(update={"named_judges": judge_labels}),
        parts,
        parameters,
        empty="No weakness is known; run `prbench capabilities` to find some.",
    )


@show_command(
    "split",
    "model",
    "judge",
    "vintage",
    "hard",
    "score",
    texts={
        "score": (
            "Score to use.  [default: the benchmark's primary score, and by category its score for"
            " single categories]"
        ),
        "model": "Only this model: the name that its conditions share, or a label (repeatable).",
        "vintage": "Only this vintage, or `all`.  [default: the current one of each model]",
    },
)
@number(
    "--flips n_criteria",
    3,
    "For each comparison, show the N criteria that gain most points, and the N that lose most.",
    least=0,
)
def conditions(context: Context, **choices: Any) -> None:
    """Compare a model with and without tools or effort.

    `conditions` in the configuration lists the labels that are one model, and names the baseline.
    Each other condition is compared with the baseline on the tasks that are complete on both sides:
    the difference of the scores with its interval and a paired test, over the whole rubric and by
    category. Length, cost and the criteria that changed are shown too.

    Examples:
      prbench conditions
      prbench conditions --model gpt-5.6-sol --flips 10
      prbench conditions --split finance_hard --json
    """
    from tasks.compare.conditions import (
        current_steps,
        definitions_of,
        model_labels_of,
        not_compared,
    )
    from warehouse import Warehouse

    job = context.stored_job(model=())
    with Warehouse(job.warehouse).reader() as reader:
        definitions = definitions_of(reader, job)
        steps = current_steps(reader, job.benchmark, definitions)
    labels = model_labels_of(definitions, job.named_models or ())
    parts = {
        "differences": "conditions",
        "categories": "condition_categories",
        "changes": "condition_changes",
        "criteria": "condition_criteria",
        "responses": "condition_responses",
    }
    show_parts(
        context,
        job.model_copy(update={"named_models": labels or None}),
        parts,
        choices,
        steps=steps,
        empty="No two conditions of a model have been judged in this selection yet.",
        lines_after=lambda rows: not_compared(
            definitions, job.named_models or (), rows["differences"]
        ),
    )


@show_command(
    "split",
    "model",
    "judge",
    "vintage",
    "hard",
    "score",
    "fail-if",
    "summary",
    texts={
        "vintage": (
            "Compare in this vintage, with the base responses of pinned models; `all`: in each"
            " vintage.  [default: the current one of each model]"
        )
    },
)
@click.argument("names", nargs=-1, metavar="A B [C]...")
@click.option(
    "--of",
    type=click.Choice(["model", "judge", "template", "run", "vintage", "revision"]),
    help="Kind of the names.  [default: the kind for which all names exist on the stored data]",
)
@number("--flips n_flips", 10, "Number of flipped criteria to show.", least=0)
@click.option(
    "--least",
    "least_difference",
    type=click.FloatRange(min=0),
    metavar="DIFFERENCE",
    help="With --fail-if, the smallest difference that counts, such as 0.01.  [default: any]",
)
@click.option(
    "--debiased",
    "is_debiased",
    is_flag=True,
    help=(
        "Also show the difference of models corrected by people's labels on a part of the verdicts."
    ),
)
def diff(
    context: Context,
    names: tuple[str, ...],
    of: str | None,
    is_debiased: bool,
    fail_if: str | None,
    least_difference: float | None,
    summary_file: TextIO | None,
    **choices: Any,
) -> int:
    """Compare models, judges, templates, runs, vintages, revisions.

    A is compared with each of the others, on the tasks that are complete on both sides. A
    difference is the second mean minus the first mean. It comes with its interval, a paired test,
    and the criteria whose verdict flipped. Models are compared in the current vintage of each, as
    on the leaderboard.

    Examples:
      prbench diff gpt-5.6-sol-high gpt-5.6-sol-low    two models
      prbench diff alpha@2026-11-27 alpha@2026-11-28   one model, two nights
      prbench diff alpha delta --vintage 2026-11-28    in a certain night
      prbench diff base 2026-11-21 --model MODEL       one model, two vintages
      prbench diff gpt-5.6-terra reader --of judge     two judges
      prbench diff a b c --split finance --json        a with b, and a with c
      prbench diff a b --debiased                      corrected by labels
      prbench diff a b --fail-if worse --least 0.01    exit code 3 if b is worse
    """
    if len(names) < 2:
        raise click.UsageError("give at least two names to compare, such as two models")
    if least_difference is not None and fail_if is None:
        raise click.UsageError("--least is for --fail-if worse; give both")
    if is_debiased and (fail_if or summary_file):
        raise click.UsageError("--debiased has no test; leave --fail-if and --summary out")
    if is_debiased:
        _show_debiased(context, names, of, choices)
        return 0
    parts = {
        "comparisons": "diff",
        "categories": "diff_categories",
        "tasks": "diff_tasks",
        "flips": "diff_flips",
    }
    if choices["n_flips"] == 0 and not context.as_json:
        del parts["flips"]  # without rows, its table would say that no criterion flipped
    title = f"Comparison of {names[0]} with {', '.join(names[1:])}"
    with reporting_errors_in(summary_file, title):
        # Compared revisions need not include the configured one.
        job = context.job if of == "revision" else context.stored_job()
        rows_by_part = show_parts(context, job, parts, choices | {"names": names, "of": of})
    return conclude_diff(
        rows_by_part["comparisons"],
        title,
        fail_if=fail_if,
        least_difference=least_difference or 0.0,
        summary_file=summary_file,
    )


def _show_debiased(
    context: Context,
    names: tuple[str, ...],
    of: str | None,
    choices: dict[str, Any],
) -> None:
    if of not in {None, "model"}:
        raise click.UsageError("--debiased compares models; leave --of out")
    if click.get_current_context().get_parameter_source("n_flips") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--debiased shows no flipped criteria; leave --flips out")
    job = context.stored_job(model=names, vintage=())
    parameters = choices | {"first": names[0], "others": list(names[1:])}
    show_parts(context, job, {"": "debiased_differences"}, parameters)


@show_command("split")
@click.argument("cheap", metavar="CHEAP")
@click.argument("strong", metavar="STRONG")
@click.option(
    "--bound",
    metavar="MEASURE=NUMBER",
    help=(
        "Pick the cheapest rule whose agreement, kappa or ranking "
        "(Kendall's tau) with STRONG is at least this, by the low end of its interval."
    ),
)
@click.option(
    "--all",
    "is_all",
    is_flag=True,
    help="Show all rules, not only those that no other rule beats.",
)
def cascade(context: Context, bound: str | None, **choices: Any) -> None:
    """Evaluate rules for a cheap judge with a strong one behind it.

    From stored verdicts of both judges, imported ones too, `prbench cascade` computes for each rule
    its cost and the agreement of its verdicts with those of STRONG alone. A rule passes a criterion
    on to STRONG if repetitions of CHEAP disagree, or by its weight, its category, the confidence of
    CHEAP, or several of these.

    Rules are built and chosen on one half of the tasks; the figures shown come from the other half.
    With --bound, the cheapest rule within the bound is picked and printed as configuration. The
    next report shows the evaluation too.

    Examples:
      prbench cascade gpt-5.6-luna gpt-5.6-terra
      prbench cascade gpt-5.6-luna gpt-5.6-terra --bound agreement=0.95
      prbench cascade gpt-5.6-luna gpt-5.6-terra --bound kappa=0.8 --all
      prbench cascade gpt-5.6-luna gpt-5.6-terra --json
    """
    from tasks.cascade import store_rules

    job = context.stored_job()
    parameters = choices | {"bound": bound, "splits": list(context.arguments.splits)}
    rows_by_part = show_parts(
        context,
        job,
        {"rules": "cascade"},
        parameters,
        empty="No rule was evaluated.",
        lines_after=lambda rows: _picked_lines(rows["rules"], bound),
    )
    store_rules(job.warehouse, rows_by_part["rules"])


def _picked_lines(rules: Sequence[Mapping[str, Any]], bound: str | None) -> list[str]:
    """Return the picked rule, with its configuration if it needs any."""
    import yaml

    picked = next((rule for rule in rules if rule["is_picked"]), None)
    if picked is None:
        return ["`--bound agreement=0.95` picks the cheapest rule within a bound."]
    sentence = (
        f"Picked: {picked['rule']}, the cheapest that keeps {bound} by the low end of its interval."
    )
    if picked["configuration"] is None:
        return [f"{sentence} No cascade is needed."]
    configuration = picked["configuration"].rstrip()
    [judge] = yaml.safe_load(configuration)
    where = "beside both judges" if "cascade" in judge else f"in place of {picked['cheap_judge']}"
    return [f"{sentence} Under `judges:` in prbench.yaml, {where}:", configuration]
