"""The page of judges: their agreement with people, with each other and with themselves, and their
drift.

Agreement with people is given twice: with the pooled decisions of all people, and as the mean over
the pairs of a grader and a person. The figure of `prbench criteria`, which is on no page, is here
too.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.figures import charts
from tasks.figures.figure import Column, ColumnGroup, Figure, Row, Rows, grouped, pooled
from tasks.figures.page import Page
from tasks.figures.scope import Scope
from tasks.figures.shown.corrections import DECISIONS
from tasks.rules.statistics.agreement import (
    AGREEMENT_MEASURES,
    agreement_intervals,
    macro_f1,
    raw_agreement,
)
from tasks.rules.statistics.intervals import have_few_tasks, means, none_if_nan
from tasks.rules.text.numbers import list_text

_N_DECISIONS = 3
"""Number of possible decisions: unmet (0), partial (0.5), met (1)."""

MeasuresRow = dict[str, Any]


def against_people(counts: Rows) -> list[MeasuresRow]:
    """Return one row for each grader and label, for each label the best grader first.

    Its measures compare all decisions of the grader with people's, so a person with more decisions
    counts more.

    Args:
        counts: decisions of graders and people on the same criteria (the query `people` of
            `sql/figures/people.sql`). `pair_grader` and `person` are the two of a pair. `grader` is
            the same as `pair_grader`, except where people are compared with each other: then it is
            one name for all of them.
    """
    rows = []
    for (grader, label), grader_counts in grouped(counts, "grader", "label").items():
        rows.append({"grader": grader, "label": label} | _agreement_measures(grader_counts))
    return sorted(rows, key=_sort_key)


def _sort_key(row: Row) -> tuple[Any, ...]:
    """Return the key to sort by: label, then kappa, the largest first and a missing one last, then
    the grader's name.
    """
    negative_kappa = math.inf if row["kappa"] is None else -row["kappa"]
    return row["label"], negative_kappa, row["grader"]


def _agreement_measures(counts: Rows) -> MeasuresRow:
    """Return the measures of one grader and label."""
    task_tables = _tables(counts, "task_id")
    pair_tables = _tables(counts, "pair_grader", "person")
    grader = counts[0]["grader"]
    is_among_people = grader != counts[0]["pair_grader"]
    if len(pair_tables) > 1 and is_among_people:
        # The order of two people has no meaning, so if there are several pairs, each counts in both
        # orders.
        task_tables = (task_tables + task_tables.swapaxes(1, 2)) / 2.0
    row = _pooled_measures(task_tables)
    task_f1 = macro_f1(task_tables)
    decision_counts = task_tables.sum(axis=1) + task_tables.sum(axis=2)  # (n_tasks, 3)
    # Macro-F1 is the mean over the decisions that occur in a task; here it is over all decisions.
    f1_absent_as_0 = task_f1 * (decision_counts > 0).sum(axis=1) / counts[0]["n_classes"]
    row["macro_f1_task_mean"] = float(task_f1.mean())
    row["macro_f1_task_mean_absent_as_0"] = float(f1_absent_as_0.mean())
    for name, measure in AGREEMENT_MEASURES.items():
        row[f"{name}_pair_mean"] = none_if_nan(means(measure(pair_tables)))
    people = {count["person"] for count in counts} | {count["pair_grader"] for count in counts}
    row["n_people"] = len(people - {grader})
    row["n_pairs"] = len(pair_tables)
    row["n_tasks"] = len(task_tables)
    row["n"] = int(task_tables.sum())
    # Tasks that all have the same agreement say little about an interval.
    row["is_small"] = bool(have_few_tasks(raw_agreement(task_tables)[:, None])[0])
    return row


def _pooled_measures(task_tables: NDArray[np.float64]) -> MeasuresRow:
    """Return the measures of all decisions together, with intervals over tasks."""
    pooled_table = task_tables.sum(axis=0)
    measures = list(AGREEMENT_MEASURES.values())
    intervals = agreement_intervals(task_tables[:, None], *measures)
    row: MeasuresRow = {}
    for (name, measure), interval in zip(AGREEMENT_MEASURES.items(), intervals, strict=True):
        low, high = interval[0]
        row[name] = none_if_nan(measure(pooled_table))
        row[f"{name}_ci_low"] = none_if_nan(low)
        row[f"{name}_ci_high"] = none_if_nan(high)
    return row


def _tables(counts: Rows, *names: str) -> NDArray[np.float64]:
    """Return the counts of pairs of decisions, a table for each value of these columns: shape (n,
    3, 3).
    """
    groups = grouped(counts, *names)
    tables = np.zeros((len(groups), _N_DECISIONS, _N_DECISIONS))
    for index, key in enumerate(sorted(groups)):
        for row in groups[key]:
            # A decision is 0, 0.5 or 1, so twice its value is an index.
            tables[index, int(2 * row["grader_value"]), int(2 * row["person_value"])] += row["n"]
    return tables


_DECISION_WORDS = ("met", "partly met", "not met")


def _is_independent(row: Row) -> bool:
    return not row["is_member"]


def _first_pairs(rows: Rows) -> list[Row]:
    """Return the rows of the first three pairs of graders; in a chart more could not be
    distinguished.
    """
    pairs = list(grouped(rows, "pair"))[:3]
    return [row for row in rows if row["pair"] in pairs]


_PAIR = ("grader_a", "grader_b")
_MEASURES = (
    Column("macro_f1", interval=True),
    Column("kappa", interval=True),
    Column("agreement", interval=True),
    "met_share_a",
    "met_share_b",
    "n",
    "n_tasks",
)

AGREEMENT_BREAKDOWNS = ["all", "category", "severity", "field", "model", "length"]
"""The breakdowns of the agreement of two graders."""
_AGREEMENT = Figure(
    "judge_agreement",
    "Agreement of graders",
    "The agreement of two graders on the criteria that both decided, over the responses of all"
    " vintages. A kappa of 1 is full agreement, 0 is agreement by chance. Partly met is a verdict"
    " of its own; in the shares called met it counts half. A majority tends to agree with its own"
    " members, so such pairs are in the table only.",
    (*_PAIR, "label", *_MEASURES, "is_member"),
    (
        charts.heat(
            subject="Kappa of each pair",
            only=_is_independent,
            x="grader_a",
            y="grader_b",
            value="kappa",
            domain=(0, 1),
            across=True,
            down=True,
            tips=["n"],
        ),
        charts.intervals(
            subject="Kappa",
            only=_is_independent,
            label="pair",
            value="kappa",
            least=(0, 1),
        ),
        charts.intervals(
            subject="Macro-F1",
            only=_is_independent,
            label="pair",
            value="macro_f1",
            least=(0, 1),
        ),
    ),
    parameters={"breakdown": "all"},
    choices={"breakdown": AGREEMENT_BREAKDOWNS},
    empty=(
        "No two graders have decided the same criteria. Configure a second judge, or import human"
        " labels."
    ),
    measured="agreement",
    essential=["grader_a", "grader_b", "kappa", "n", "n_tasks"],
    boards=["label"],
    query="judges/judge_agreement",
    mart="judge_agreement",
)
_VARIANTS = Figure(
    "variant_agreement",
    "Agreement with people, by rubric and grading",
    "Macro-F1 of each grader against imported verdicts (usually people's), for each wording of the"
    " rubric and each grading. The chart pools all criteria; the table also has the mean over"
    " tasks, once with absent verdicts as 0, as in the published code. It is harder to agree on"
    " three steps than on two, so do not compare gradings.",
    (
        "rubric",
        "grading",
        "grader",
        "reference",
        Column("macro_f1", "Macro-F1, all criteria", interval=True),
        "macro_f1_task_mean",
        "macro_f1_task_mean_absent_as_0",
        "kappa",
        "agreement",
        "n",
        "n_tasks",
    ),
    charts.intervals(label="variant", value="macro_f1", name="pair", hollow="is_few", least=(0, 1)),
    essential=["grader", "reference", "macro_f1", "kappa", "n"],
    boards=["rubric", "grading"],
    query="judges/variant_agreement",
    mart="variant_agreement",
)
_CONFUSION = Figure(
    "judge_confusion",
    "Verdicts of two graders compared",
    "The verdicts of two graders on the same criteria. On the diagonal they agree; a high share off"
    " it is a bias.",
    (*_PAIR, "says_a", "says_b", "n", "share"),
    charts.heat(
        "pair",
        rows=_first_pairs,
        x="says_b",
        y="says_a",
        value="share",
        domain=(0, 1),
        across=_DECISION_WORDS,
        down=_DECISION_WORDS,
        tips=["n"],
    ),
    boards=["grader_a", "grader_b"],
    query="judges/judge_confusion",
)
_BREAKDOWNS = Figure(
    "judge_breakdowns",
    "Agreement by label",
    "Kappa of the same graders for one label at a time.",
    (*_PAIR, "breakdown", "label", *_MEASURES),
    charts.intervals(
        "breakdown",
        rows=_first_pairs,
        label="label",
        value="kappa",
        is_sorted=True,
        name="pair",
        hollow="is_few",
        least=(0, 1),
    ),
    mark_note="A hollow dot is based on fewer than 50 criteria.",
    essential=["label", "kappa", "n", "n_tasks"],
    boards=["grader_a", "grader_b", "breakdown"],
    query="judges/judge_breakdowns",
)
_RELIABILITY = Figure(
    "judge_reliability",
    "Reliability",
    "Krippendorff's alpha is agreement beyond chance: of all graders, of each judge with its own"
    " repetitions, and of the members of each majority. Graders that make the same errors are worth"
    " fewer votes than their number.",
    (
        "grader_set",
        "label",
        "n_graders",
        Column("alpha", interval=True),
        "unanimous_share",
        "n_voters",
        Column("effective_votes", interval=True, few="effective_votes_is_small"),
        "effective_votes_note",
        "n",
        "n_tasks",
    ),
    charts.intervals(label="grader_set", value="alpha", least=(0, 1)),
    parameters={"breakdown": "all"},
    choices={"breakdown": ["all", "category", "severity"]},
    essential=["grader_set", "n_graders", "alpha", "unanimous_share", "n", "n_tasks"],
    boards=["label"],
    query="judges/judge_reliability",
    mart="grader_reliability",
)
_CALIBRATION = Figure(
    "calibration",
    "Calibration of probabilities",
    "A judge's probabilities against the decisions of another grader, such as people or a stronger"
    " judge; the decisions of several people are also pooled (people together). The calibration"
    " error is the mean distance between a probability and the share that is really met; its"
    " interval begins at 0 unless chance does not explain the error. Reliability minus resolution"
    " plus uncertainty is about the Brier score.",
    (
        "judge",
        "reference",
        "breakdown",
        "label",
        Column("calibration_error", interval=True, few="is_small"),
        "plain_error",
        Column("brier", interval=True),
        "reliability",
        "resolution",
        "uncertainty",
        "mean_probability",
        "met_share",
        "n",
        "n_tasks",
    ),
    query="judges/calibration",
    mart="calibration",
    measured="brier",
    essential=["judge", "reference", "calibration_error", "met_share", "n"],
    boards=["breakdown", "label"],
)
_DIAGRAM = Figure(
    "reliability_diagram",
    "Reliability diagram",
    "The share of criteria that are really met, by the judge's probability; below the dashed line"
    " the judge says met too often. The table also has the diagrams for each label.",
    (
        "judge",
        "reference",
        "breakdown",
        "label",
        "bin",
        "mean_probability",
        "met_share",
        "n",
    ),
    charts.dots(
        "reference",
        only=lambda row: row["breakdown"] == "all",
        x="mean_probability",
        y="met_share",
        n="n",
        colour="judge",
        tips=["judge", "mean_probability", "met_share", "n"],
    ),
    query="judges/reliability_diagram",
    mart="calibration_curve",
    boards=["judge", "reference", "breakdown", "label"],
)
_NEIGHBOURS = Figure(
    "neighbour_effects",
    "Effect of neighbours in a call",
    "Verdicts of a judge on the same criteria in two arrangements of calls: alone (one by one),"
    " grouped (as configured) and shuffled (groups in another order). The change is the second"
    " share minus the first: of met criteria (met), or of criteria on which another grader agrees"
    " (agreement).",
    (
        "judge",
        "measure_of",
        "compared_with",
        "arrangement",
        "breakdown",
        "label",
        Column("change", interval=True, few="is_small"),
        "before",
        "after",
        "n",
        "n_tasks",
    ),
    measured="change",
    essential=["measure_of", "compared_with", "arrangement", "change", "n", "n_tasks"],
    boards=["judge", "breakdown", "label"],
    query="judges/neighbour_effects",
)
_WORTHWHILE = 0.9
"""A repetition is worth its cost if it brings the width of an interval below this share."""


def repetition_lines(scope: Scope) -> list[str]:
    """Return a line on the configured repetitions that hardly narrow the intervals of a model on
    any split; none without such repetitions.
    """
    settings = scope.job.settings
    repeated_sources = []
    if settings.trials > 1:
        repeated_sources.append("trials")
    if any(judge.trials > 1 for judge in settings.judges):
        repeated_sources.append("judge trials")
    if not repeated_sources:
        return []
    rows = [row for row in scope.rows_of(UNCERTAINTY) if row["single_width"] is not None]
    names_by_source: dict[str, list[str]] = {}
    for (source, model), model_rows in grouped(rows, "source", "model_label").items():
        is_wide = all(row["width"] > _WORTHWHILE * row["single_width"] for row in model_rows)
        if is_wide and source in repeated_sources and model in settings.model_labels:
            names_by_source.setdefault(source, []).append(model)
    if not names_by_source:
        return []
    parts = [f"{source} of {list_text(names)}" for source, names in names_by_source.items()]
    return [
        f"Repetitions that narrow intervals by less than a tenth: {'; '.join(parts)} (prbench"
        " figure uncertainty)"
    ]


UNCERTAINTY = Figure(
    "uncertainty",
    "What would narrow the interval",
    "The variance of a score by its source: tasks, sampling of responses (trials), repetition of"
    " the judge (judge trials), and choice of judge; its share is of the variance of the mean. An"
    " estimate below 0 is noise around a small variance. Without repetitions a source is not"
    " separable: the one before it contains it. Fewer than five judges have only the range of their"
    " means. The width is that of the 95 % interval of the mean before clipping: now, and as"
    " expected with 100 more tasks, one more trial or judge trial of each, or one more judge. For"
    " the choice of judge, the interval is for other judges too. Costs are the mean prices of"
    " stored responses and verdicts.",
    (
        "judge_config",
        "split",
        "model",
        Column("source", "Source"),
        Column("note", "Note"),
        Column("variance", "Variance", "variance", interval=True, few="is_small"),
        Column("variance_share", "Share", "share"),
        Column("width", "Width", "score"),
        Column("single_width", "Width with one", "score"),
        Column("width_after", "Width with more", "score"),
        Column("change_usd", "Cost", "usd"),
        "n_tasks",
        "n_responses",
    ),
    essential=[
        "model",
        "source",
        "variance_share",
        "width",
        "width_after",
        "change_usd",
    ],
    query="judges/uncertainty",
)
_LENIENCY = Figure(
    "judge_leniency",
    "Leniency",
    "The share that a grader calls met minus the share that the others call met, on the same"
    " criteria, those with a negative weight included.",
    (
        "grader",
        "kind",
        "leniency",
        ColumnGroup("Called met", [Column("met_share", "by it"), "others_met_share"]),
        "n",
    ),
    charts.bars(name="grader", value="leniency", percent=True),
    query="judges/judge_leniency",
    mart="judge_leniency",
)
_FAVOURS = Figure(
    "judge_favours",
    "Judge bias by model",
    "A grader's score of a model's responses minus the others' score of them, compared with the"
    " grader's average.",
    (
        "grader",
        "model",
        Column("favour", few="is_small"),
        "difference",
        ColumnGroup("Mean score", ["own_mean", "others_mean"]),
        "n_tasks",
        "n_responses",
    ),
    charts.heat(
        required="favour",
        x="grader",
        y="model",
        value="favour",
        diverging=True,
        across=True,
        down=True,
        marked="is_small",
        tips=["difference", "n_tasks"],
    ),
    essential=["grader", "model", "favour", "difference", "n_tasks", "n_responses"],
    query="judges/judge_favours",
)
_DRIFT = Figure(
    "judge_drift",
    "Drift over nights",
    "The share of verdicts that are the same as the first ones, when a judge judges its control set"
    " again, and the expected share (solid). Below the control limit (dashed), which earlier nights"
    " determine, below the joint limit (dashed and dotted), which finds small changes that last, or"
    " below the configured minimum (dotted), the judge has drifted (red), and the scores of that"
    " night are not comparable. A steady judge falls below its joint limit in 5 % of years at most."
    " Agreement with people tells which decisions are better, the first or the new ones.",
    (
        "grader",
        "night",
        Column("agreement", "Agreement"),
        "centre",
        "lower_limit",
        "joint_limit",
        "min_agreement",
        "cause",
        "kappa",
        ColumnGroup("Called met", ["first_met_share", Column("met_share", "now")]),
        "first_people_agreement",
        "people_agreement",
        "n_labelled",
        "labels_represent",
        "n_members",
        "n_decided",
        "n_failed",
        "n_lost",
    ),
    charts.control(
        "grader",
        x="night",
        value="agreement",
        title="Agreement",
        marked="is_out_of_control",
        lines=["centre", "lower_limit", "min_agreement", "joint_limit"],
        tips=[
            "night",
            "agreement",
            "centre",
            "lower_limit",
            "joint_limit",
            "min_agreement",
            "people_agreement",
            "n_labelled",
            "cause",
        ],
    ),
    reach="warehouse",
    essential=[
        "night",
        "agreement",
        "lower_limit",
        "joint_limit",
        "cause",
        "people_agreement",
        "n_decided",
        "n_failed",
    ],
    boards=["grader"],
    query="judges/judge_drift",
)
_FAILURES = Figure(
    "judge_failures",
    "Failures by cause",
    "Failed verdicts on the responses of this report. They are never counted as not met; the"
    " response has no score.",
    (
        "grader",
        "status",
        "is_failure",
        Column("n", "Verdicts"),
        "share",
        Column("n_verdicts", "of"),
        Column("attempts", "Calls", "count"),
    ),
    charts.bars(
        only=lambda row: row["is_failure"],
        name="grader",
        value="n",
        colour="status",
        whole=True,
        title="Failed verdicts",
    ),
    essential=["grader", "status", "n", "share"],
    query="judges/judge_failures",
)

PEOPLE = Figure(
    "people_agreement",
    "Agreement with people",
    "The agreement of each grader with the pooled decisions of some people, and the mean over the"
    " pairs, as in table 3 of the paper.",
    (
        "grader",
        "label",
        Column("kappa", interval=True, few="is_small"),
        Column("macro_f1", interval=True),
        Column("agreement", interval=True),
        Column("n_people", "People"),
        "n",
        "n_tasks",
        Column("macro_f1_task_mean", "Macro-F1", group="Mean over tasks"),
        "kappa_pair_mean",
        "macro_f1_pair_mean",
    ),
    compute=lambda scope, parameters: against_people(
        scope.rows("figures/people/people", parameters)
    ),
    parameters={"breakdown": "all", "people": []},
    choices={"breakdown": AGREEMENT_BREAKDOWNS},
    required=["people"],
    empty="No criterion has been decided by one of these people and by another grader.",
    essential=["grader", "kappa", "agreement", "n"],
    boards=["label"],
)
"""The figure of `prbench judges --people`."""
CRITERIA = Figure(
    "criteria",
    "Criteria worth a second look",
    "Criteria that are never or always met, that graders disagree on most, or whose points"
    " correlate negatively with the rest of their task.",
    (
        "task_id",
        "criterion_id",
        "category",
        "weight",
        "met_share",
        "n_responses",
        "n_models",
        "rest_correlation",
        "rest_correlation_high",
        "n_graded",
        "disagreement",
        "n_disagreeing",
        "n_reviews",
        "failed_checks",
        "judge_config",
        "vintage",
        "title",
    ),
    parameters={"which": "suspect", "n_criteria": 20},
    choices={"which": ["never-met", "always-met", "disagreed", "suspect"]},
    essential=["task_id", "weight", "met_share", "rest_correlation", "disagreement", "title"],
    boards=["judge_config", "vintage"],
    query="criteria/criteria",
)
"""The figure of `prbench criteria`."""

JUDGES = Page(
    "judges",
    "Judges",
    "The reliability of the judges: agreement with people, each other and themselves, bias,"
    " failures and drift.",
    (
        *pooled(
            _AGREEMENT,
            _VARIANTS,
            _CONFUSION,
            _BREAKDOWNS,
            _RELIABILITY,
            _CALIBRATION,
            _DIAGRAM,
            _NEIGHBOURS,
            _LENIENCY,
        ),
        _FAVOURS,
        UNCERTAINTY,
        DECISIONS,
        _DRIFT,
        _FAILURES,
    ),
    has_judge=False,
    group="Judges",
)
