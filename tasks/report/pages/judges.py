"""Judges: how far they agree with people, with each other and with themselves, and whether they stay as they are."""

from tasks.report.content.figures import Column, Figure, Page
from tasks.report.pages.judge_plots import (
    agreeing,
    by_label,
    by_variant,
    confusing,
    drifting,
    failing,
    favouring,
    lenient,
    reliable,
)

_PAIR = (Column("grader_a", "Grader"), Column("grader_b", "Other grader"))
_MEASURES = (
    Column("macro_f1", "Value", "score", "Macro-F1"),
    Column("macro_f1_ci_low", "from", "score", "Macro-F1"),
    Column("macro_f1_ci_high", "to", "score", "Macro-F1"),
    Column("kappa", "Value", "score", "Kappa"),
    Column("kappa_ci_low", "from", "score", "Kappa"),
    Column("kappa_ci_high", "to", "score", "Kappa"),
    Column("agreement", "Share", "share", "Same decision"),
    Column("agreement_ci_low", "from", "share", "Same decision"),
    Column("agreement_ci_high", "to", "share", "Same decision"),
    Column("met_share_a", "by the one", "share", "Called met"),
    Column("met_share_b", "by the other", "share", "Called met"),
    Column("n", "Criteria", "count"),
    Column("n_tasks", "Tasks", "count"),
)

_AGREEMENT = Figure(
    "judge_agreement",
    "Agreement of graders",
    "How alike two graders decide on the criteria that both decided, over the answers of all samplings. 1 is always, a "
    "kappa of 0 is what chance would give. Lines are 95 % intervals for other tasks of the same kind. What is met in "
    "part is a decision of its own, unless it is read as binary; in the shares called met it counts half. A majority "
    "beside one of its own voters agrees by making: such pairs are in the table only.",
    (*_PAIR, *_MEASURES, Column("is_member", "By making", "yes")),
    agreeing,
    empty="No two graders have decided on the same criteria. Configure a second judge, judge again, or import the "
    "labels of people.",
    reach="pooled",
)
_VARIANTS = Figure(
    "variant_agreement",
    "Agreement with people, by rubric and grading",
    "Macro-F1 of each grader with imported verdicts, people's most often, for each wording of the rubric and each "
    "grading, with 95 % intervals: over all criteria together, and beside it in the table the mean of the tasks' own, "
    "with the decisions that occur in a task, and with those that do not as 0, as the published code has it. Three "
    "steps are harder to agree on than two, so gradings are not compared with each other. A dot that is not filled "
    "rests on fewer than 50 criteria.",
    (
        Column("rubric", "Rubric"),
        Column("grading", "Grading"),
        Column("grader", "Grader"),
        Column("reference", "Held against"),
        Column("macro_f1", "Value", "score", "Macro-F1, all criteria"),
        Column("macro_f1_ci_low", "from", "score", "Macro-F1, all criteria"),
        Column("macro_f1_ci_high", "to", "score", "Macro-F1, all criteria"),
        Column("macro_f1_task_mean", "that occur", "score", "Mean of the tasks' own, with decisions"),
        Column("macro_f1_task_mean_absent_as_0", "absent as 0", "score", "Mean of the tasks' own, with decisions"),
        Column("kappa", "Kappa", "score"),
        Column("agreement", "Same decision", "share"),
        Column("n", "Criteria", "count"),
        Column("n_tasks", "Tasks", "count"),
    ),
    by_variant,
    is_optional=True,
    reach="pooled",
)
_CONFUSION = Figure(
    "judge_confusion",
    "What they disagree on",
    "How often the decisions of two graders meet. On the diagonal they agree; a full corner off it is a bias: the one "
    "says met where the other does not. Pairs with people come first.",
    (
        *_PAIR,
        Column("says_a", "says", group="Grader"),
        Column("says_b", "says", group="Other grader"),
        Column("n", "Criteria", "count"),
        Column("share", "Share", "share"),
    ),
    confusing,
    empty="No two graders have decided on the same criteria.",
    reach="pooled",
)
_BREAKDOWNS = Figure(
    "judge_breakdowns",
    "Where they disagree",
    "Kappa of the same graders under one label at a time, with 95 % intervals. A dot that is not filled rests on "
    "fewer than 50 criteria. The charts show the pairs with people first, then those with most criteria; the table "
    "has all.",
    (*_PAIR, Column("breakdown", "By"), Column("label", "Label"), *_MEASURES),
    by_label,
    empty="No two graders have decided on the same criteria.",
    reach="pooled",
)
_RELIABILITY = Figure(
    "judge_reliability",
    "Reliability",
    "Krippendorff's alpha of all graders together, and of each judge with itself where it judged the same again: how "
    "much they agree beyond chance. 1 is perfect, 0 is chance.",
    (
        Column("grader_set", "Graders"),
        Column("n_graders", "Number", "count"),
        Column("alpha", "Alpha", "score"),
        Column("alpha_ci_low", "from", "score", "95 % interval"),
        Column("alpha_ci_high", "to", "score", "95 % interval"),
        Column("unanimous_share", "All alike", "share"),
        Column("n", "Criteria", "count"),
        Column("n_tasks", "Tasks", "count"),
    ),
    reliable,
    empty="No criterion has been decided twice.",
    reach="pooled",
)
_LENIENCY = Figure(
    "judge_leniency",
    "Leniency",
    "How much more often a grader says met than the others do on the same criteria, in percentage points: to the "
    "right it is more lenient than they are, to the left more severe. Undesired things that an answer does count as "
    "met too.",
    (
        Column("grader", "Grader"),
        Column("kind", "Kind"),
        Column("leniency", "Difference", "signed"),
        Column("met_share", "by it", "share", "Called met"),
        Column("others_met_share", "by the others", "share", "Called met"),
        Column("n", "Criteria", "count"),
    ),
    lenient,
    empty="No two graders have decided on the same criteria.",
    reach="pooled",
)
_FAVOURS = Figure(
    "judge_favours",
    "Judge bias by model",
    "Score that a grader gives a model's answers minus the score that the others give the same answers, beside the "
    "grader's average over the tasks of all models: +0.05 is five points more than its leniency explains. Only answers "
    "that are decided in full by both sides; the latest sampling of each model. An asterisk marks fewer than 50 tasks. "
    "Watch a judge that is of a model's own family.",
    (
        Column("grader", "Grader"),
        Column("model", "Model"),
        Column("favour", "Favour", "signed"),
        Column("difference", "Difference", "signed"),
        Column("own_mean", "by it", "score", "Mean score"),
        Column("others_mean", "by the others", "score", "Mean score"),
        Column("n_tasks", "Tasks", "count"),
        Column("is_small", "Few", "yes"),
        Column("n_responses", "Answers", "count"),
    ),
    favouring,
    empty="No answer has been decided in full by two graders.",
)
_DRIFT = Figure(
    "judge_drift",
    "Drift over nights",
    "Every night each judge decides again on the same old answers: the share that it decides as at first. Below the "
    "control limit, which follows from the earlier nights, or below the configured bar it no longer is the judge that "
    "it was (red), and the scores of that night are not comparable.",
    (
        Column("grader", "Grader"),
        Column("night", "Night"),
        Column("agreement", "Agreement", "share"),
        Column("centre", "Expected", "share"),
        Column("lower_limit", "Limit", "share"),
        Column("min_agreement", "Bar", "share"),
        Column("cause", "Below"),
        Column("kappa", "Kappa", "score"),
        Column("first_met_share", "at first", "share", "Called met"),
        Column("met_share", "now", "share", "Called met"),
        Column("n_members", "Members", "count"),
        Column("n_decided", "Decided", "count"),
        Column("n_failed", "Failed", "count"),
        Column("n_lost", "Lost", "count"),
    ),
    drifting,
    empty="No night has judged a control set again. prbench nightly does.",
    reach="warehouse",
)
_FAILURES = Figure(
    "judge_failures",
    "Failures by cause",
    "Verdicts that brought no decision, by cause, of those on the answers that this report shows. A failed verdict is "
    "undecided: it is never counted as unmet, and its answer has no score.",
    (
        Column("grader", "Grader"),
        Column("status", "Outcome"),
        Column("is_failure", "Failed", "yes"),
        Column("n", "Verdicts", "count"),
        Column("share", "Share", "share"),
        Column("n_verdicts", "of", "count"),
        Column("attempts", "Requests", "count"),
    ),
    failing,
    empty="No judge has decided anything yet.",
)

JUDGES = Page(
    "judges",
    "Judges",
    "Whether the judges can be believed: how far they agree with people, with each other and with themselves, where "
    "they do not, and whether they stay as they are.",
    (_AGREEMENT, _VARIANTS, _CONFUSION, _BREAKDOWNS, _RELIABILITY, _LENIENCY, _FAVOURS, _DRIFT, _FAILURES),
    has_judging=False,
)
