"""The page of judges: their agreement with people, with each other and with themselves, and their drift."""

from typing import Any

from tasks.figures import charts
from tasks.figures.charts import names_in_order
from tasks.figures.columns import Row, Rows, columns
from tasks.figures.figure import Figure, Page, pooled
from tasks.figures.people import against_people
from tasks.figures.shown.corrections import DECISIONS

_MOST_PAIRS = 3
"""Largest number of pairs of graders in charts; more could not be distinguished."""
_CHARTED = {
    "category": "By category of the criterion",
    "severity": "By severity of the criterion",
    "model": "By model",
    "length": "By letters and digits of the response",
    "field": "By field of the task",
}
_DECISIONS = ("met", "partly met", "not met")


def _paired(rows: Rows) -> list[dict[str, Any]]:
    return [{**row, "pair": _pair(row)} for row in rows if not row["is_member"]]


def _both_ways(rows: Rows) -> list[dict[str, Any]]:
    """Return a cell for each pair of graders in both orders; none for fewer than three graders."""
    sides = (("grader_a", "grader_b"), ("grader_b", "grader_a"))
    cells = [{**row, "one": row[one], "other": row[other]} for row in _paired(rows) for one, other in sides]
    return cells if len(names_in_order(cells, "one")) > 2 else []


def _variants(rows: Rows) -> list[dict[str, Any]]:
    return [
        {**row, "pair": f"{row['grader']} – {row['reference']}", "variant": f"{row['rubric']}, {row['grading']}"}
        for row in rows
    ]


def _first_pairs(rows: Rows) -> list[dict[str, Any]]:
    titled = [{**row, "pair": f"{row['grader_a']} (rows) and {row['grader_b']} (columns)"} for row in rows]
    charted = names_in_order(titled, "pair")[:_MOST_PAIRS]
    return [row for row in titled if row["pair"] in charted]


def _by_label(rows: Rows) -> list[dict[str, Any]]:
    """Return the rows of the first pairs of graders for each kind of label that has charts, with its heading."""
    first = [{**row, "pair": _pair(row)} for row in rows if row["pair_rank"] <= _MOST_PAIRS]
    return [{**row, "by": title} for kind, title in _CHARTED.items() for row in first if row["breakdown"] == kind]


def by_chance(rows: Rows) -> list[str]:
    """Return a note if all correlations may be due to chance."""
    limits = [row["rest_correlation_high"] for row in rows if (row["rest_correlation"] or 0) < 0]
    if len(limits) < len(rows) or any((limit or 0) < 0 for limit in limits):
        return []
    return ["All of these may be due to chance: none has an upper limit below 0, which needs at least 4 models."]


def _pair(row: Row) -> str:
    return f"{row['grader_a']} – {row['grader_b']}"


_PAIR = "grader_a grader_b"
_MEASURES = "macro_f1± kappa± agreement± met_share_a met_share_b n n_tasks"

_AGREEMENT = Figure(
    "judge_agreement",
    "Agreement of graders",
    "The agreement of two graders on the criteria that both decided, over the responses of all vintages. A kappa of 1 "
    "is full agreement, 0 is agreement by chance. Lines are 95 % intervals for other tasks of the same kind. Partly "
    "met is a verdict of its own, unless it is read as binary; in the shares called met it counts half. A majority "
    "always tends to agree with its own members, so such pairs are in the table only.",
    columns(_PAIR, "label", _MEASURES, "is_member"),
    (
        charts.heat(
            what="Kappa of each pair", rows=_both_ways, x="other", y="one", value="kappa", title="Kappa", domain=(0, 1),
            across=True, down=True, tips={"n": "criteria"},
        ),
        *(
            charts.intervals(
                what=title, rows=_paired, label="pair", value=measure, title=title, least=(0, 1),
            )
            for measure, title in (("kappa", "Kappa"), ("macro_f1", "Macro-F1"))
        ),
    ),
    given={"breakdown": "all"},
    empty="No two graders have decided the same criteria. Configure a second judge, judge again, or import human "
    "labels.",
    measured=("agreement",),
)  # fmt: skip
_VARIANTS = Figure(
    "variant_agreement",
    "Agreement with people, by rubric and grading",
    "Macro-F1 of each grader against imported verdicts (usually people's), for each wording of the rubric and each "
    "grading, with 95 % intervals. The charts pool all criteria. The table also has the mean over tasks, once with "
    "only the verdicts that occur in a task, and once with absent ones as 0, as in the published code. It is harder to "
    "agree on three steps than on two, so do not compare gradings. A hollow dot is based on fewer than 50 criteria.",
    columns(
        "rubric grading grader reference macro_f1± macro_f1_task_mean macro_f1_task_mean_absent_as_0 kappa agreement n "
        "n_tasks",
        macro_f1="Macro-F1, all criteria",
    ),
    charts.intervals(
        rows=_variants, label="variant", value="macro_f1", title="Macro-F1", name="pair", hollow="is_few",
        least=(0, 1),
    ),
    is_optional=True,
)  # fmt: skip
_CONFUSION = Figure(
    "judge_confusion",
    "Verdicts of two graders compared",
    "The verdicts of two graders on the same criteria. On the diagonal they agree. A high share off the diagonal is a "
    "bias: one grader says met when the other does not. Pairs with people come first.",
    columns(_PAIR, "says_a says_b n share"),
    charts.heat(
        "pair", rows=_first_pairs, x="says_b", y="says_a", value="share", title="share", domain=(0, 1),
        across=_DECISIONS, down=_DECISIONS, tips={"n": "criteria"}, percent=True,
    ),
    empty="No two graders have decided the same criteria.",
)  # fmt: skip
_BREAKDOWNS = Figure(
    "judge_breakdowns",
    "Agreement by label",
    "Kappa of the same graders for one label at a time, with 95 % intervals. A hollow dot is based on fewer than 50 "
    "criteria. The charts show pairs with people first, then those with most criteria; the table has all pairs.",
    columns(_PAIR, "breakdown label", _MEASURES),
    charts.intervals(
        "by", rows=_by_label, label="label", value="kappa", title="Kappa", is_sorted=True, name="pair",
        hollow="is_few", least=(0, 1),
    ),
    empty="No two graders have decided the same criteria.",
)  # fmt: skip
_RELIABILITY = Figure(
    "judge_reliability",
    "Reliability",
    "Krippendorff's alpha is agreement beyond chance: of all graders together, of each judge with its own repeated "
    "verdicts, and of the members of each majority. 1 is perfect agreement, 0 is chance. Effective votes: graders "
    "that make the same errors are worth fewer votes than their number.",
    columns(
        "grader_set label n_graders alpha± unanimous_share n_voters effective_votes± effective_votes_is_small "
        "effective_votes_note n n_tasks"
    ),
    charts.intervals(
        label="grader_set", value="alpha", title="Krippendorff's alpha", least=(0, 1)
    ),
    given={"breakdown": "all"},
)  # fmt: skip
_CALIBRATION = Figure(
    "calibration",
    "Calibration of probabilities",
    "The calibration of a judge's probabilities against the decisions of another grader, such as people or a stronger "
    "judge. The calibration error is the mean distance between a probability and the share that is really met; 0 is "
    "calibrated. The Brier score is reliability minus resolution plus uncertainty. Intervals are for other tasks.",
    columns(
        "judge reference breakdown label calibration_error± is_small plain_error brier± reliability resolution "
        "uncertainty mean_probability met_share n n_tasks"
    ),
    relation="calibration",
    order="judge, reference, breakdown, label",
    measured=("brier",),
    is_optional=True,
)
_DIAGRAM = Figure(
    "reliability_diagram",
    "Reliability diagram",
    "The share of criteria that are really met, by the judge's probability. On the dashed line both are equal; below "
    "it the judge says met too often. The table also has the diagrams for each label.",
    columns("judge reference breakdown label bin mean_probability met_share n"),
    charts.dots(
        "reference", rows=lambda rows: [row for row in rows if row["breakdown"] == "all"], x="mean_probability",
        y="met_share", n="n", colour="judge", x_title="Probability of met", y_title="Really met",
        tips={"judge": "judge", "mean_probability": "Probability of met", "met_share": "Really met", "n": "criteria"},
    ),
    relation="calibration_curve",
    order="judge, reference, breakdown, label, bin",
    is_optional=True,
)  # fmt: skip
_NEIGHBOURS = Figure(
    "neighbour_effects",
    "Effect of neighbours in a call",
    "Verdicts of a judge on the same criteria in two arrangements of calls: alone (one by one), grouped (as "
    "configured) and shuffled (groups in another order). The change is the second share minus the first, with its 95 "
    "% interval for other tasks. The share is that of met criteria (met), or of criteria on which another grader "
    "agrees (agreement).",
    columns("judge measure_of compared_with arrangement breakdown label change± is_small before after n n_tasks"),
    relation="neighbour_effects",
    order="judge, measure_of <> 'met', measure_of, compared_with, arrangement, breakdown, label",
    measured=("change",),
    is_optional=True,
)
_LENIENCY = Figure(
    "judge_leniency",
    "Leniency",
    "The share that a grader calls met minus the share that the others call met, on the same criteria, in percentage "
    "points: more lenient to the right, more severe to the left. Criteria with a negative weight are included: if "
    "such a criterion is met, the response makes the mistake.",
    columns("grader kind leniency", "Called met: met_share others_met_share", "n", met_share="by it"),
    charts.bars(name="grader", value="leniency", title="Says met more often than others, by", percent=True),
    relation="judge_leniency",
    order="leniency desc, grader",
    empty="No two graders have decided the same criteria.",
)
_FAVOURS = Figure(
    "judge_favours",
    "Judge bias by model",
    "The score that a grader gives a model's responses minus the score that the other graders give them, compared with "
    "the grader's average difference over all models: +0.05 is five points more than its leniency explains. Only "
    "responses that both sides decided in full, of each model's latest vintage. An asterisk marks fewer than 50 "
    "tasks. Check judges of the same family as a model with care.",
    columns("grader model favour is_small difference", "Mean score: own_mean others_mean", "n_tasks n_responses"),
    charts.heat(
        known="favour", x="grader", y="model", value="favour", title="Favour", diverging=True,
        across=True, down=True, marked="is_small",
        tips={"difference": "difference", "n_tasks": "tasks"},
    ),
    empty="No response has been decided in full by two graders.",
)  # fmt: skip
_DRIFT = Figure(
    "judge_drift",
    "Drift over nights",
    "Every night each judge judges the same old responses again (its control set). The chart shows the share of "
    "verdicts that are the same as the first ones, and the expected share (solid). Below the control limit (dashed), "
    "which earlier nights determine, or below the configured minimum (dotted), the judge has drifted (red), and the "
    "scores of that night are not comparable.",
    columns(
        "grader night agreement centre lower_limit min_agreement cause kappa", "Called met: first_met_share met_share",
        "n_members n_decided n_failed n_lost", agreement="Agreement", met_share="now",
    ),
    charts.control(
        "grader", x="night", value="agreement", title="Agreement", marked="is_out_of_control",
        lines=["centre", "lower_limit", "min_agreement"],
        tips={"night": "night", "agreement": "agreement", "centre": "expected", "lower_limit": "limit",
              "min_agreement": "configured minimum", "cause": "below"},
    ),
    empty="No night has judged a control set yet; prbench nightly does.",
    reach="warehouse",
)  # fmt: skip
_FAILURES = Figure(
    "judge_failures",
    "Failures by cause",
    "Failed verdicts on the responses of this report, by cause. A failed verdict is undecided: it is never counted as "
    "not met, and its response has no score.",
    columns(
        "grader status is_failure n share n_verdicts attempts", n="Verdicts", n_verdicts="of",
        attempts=("count", "Calls"),
    ),
    charts.bars(
        rows=lambda rows: [row for row in rows if row["is_failure"]], name="grader", value="n", title="Failed verdicts",
        colour="status", whole=True,
    ),
)  # fmt: skip

PEOPLE = Figure(
    "people_agreement",
    "Agreement with people",
    "The agreement of each grader with the pooled decisions of some people. A person with more decisions counts more. "
    "The mean over the pairs is also shown, as in table 3 of the paper.",
    columns(
        "grader label kappa± is_small macro_f1± agreement± n_people n n_tasks macro_f1_task_mean kappa_pair_mean "
        "macro_f1_pair_mean", n_people="People", macro_f1_task_mean="Mean over tasks: Macro-F1",
    ),
    compute=lambda scope, given: against_people(scope.rows("people/people", given)),
    given={"breakdown": "all", "people": []},
    empty="No criterion has been decided by one of these people and by another grader.",
)  # fmt: skip
"""The figures of `prbench judges --people`."""
CRITERIA = Figure(
    "criteria",
    "Criteria worth a second look",
    "Criteria that no complete response meets, that every one meets, that graders disagree on most, or whose points "
    "correlate negatively with the rest of their task, so that their weight or sign may be wrong.",
    columns(
        "task_id criterion_id category weight met_share n_responses n_models rest_correlation rest_correlation_high "
        "n_graded disagreement n_disagreeing n_reviews failed_checks judge judge_trial vintage title"
    ),
    given={"which": "suspect", "n_criteria": 20},
    notes=by_chance,
)
"""The figures of `prbench criteria`."""

JUDGES = Page(
    "judges",
    "Judges",
    "The reliability of the judges: agreement with people, each other and themselves, bias, failures and drift.",
    (*pooled(_AGREEMENT, _VARIANTS, _CONFUSION, _BREAKDOWNS, _RELIABILITY, _CALIBRATION, _DIAGRAM, _NEIGHBOURS,
             _LENIENCY), _FAVOURS, DECISIONS, _DRIFT, _FAILURES),
    has_judge=False,
)  # fmt: skip
