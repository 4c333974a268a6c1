"""Judges: how far they agree with people, with each other and with themselves, and whether they stay as they are."""

from tasks.report.content.columns import Column, columns
from tasks.report.content.figures import Figure, Page
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

_PAIR = columns("grader_a grader_b")
_MEASURES = (
    *columns("macro_f1 macro_f1_ci_low macro_f1_ci_high", "Macro-F1", macro_f1="Value"),
    *columns("kappa kappa_ci_low kappa_ci_high", "Kappa", kappa="Value"),
    *columns("agreement agreement_ci_low agreement_ci_high", "Same decision"),
    *columns("met_share_a met_share_b n n_tasks"),
)

_AGREEMENT = Figure(
    "judge_agreement",
    "Agreement of graders",
    "How alike two graders decide on the criteria that both decided, over the answers of all samplings. 1 is always, a "
    "kappa of 0 is what chance would give. Lines are 95 % intervals for other tasks of the same kind. What is met in "
    "part is a decision of its own, unless it is read as binary; in the shares called met it counts half. A majority "
    "beside one of its own voters agrees by making: such pairs are in the table only.",
    (
        *_PAIR,
        *_MEASURES,
        *columns("is_member"),
    ),
    agreeing,
    empty="No two graders have decided on the same criteria. Configure a second judge, judge again, or import the "
    "labels of people.",
    reach="pooled",
    query="judges/agreement",
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
        *columns("rubric grading grader reference"),
        *columns("macro_f1 macro_f1_ci_low macro_f1_ci_high", "Macro-F1, all criteria", macro_f1="Value"),
        *columns(
            "macro_f1_task_mean macro_f1_task_mean_absent_as_0 kappa agreement n n_tasks", agreement="Same decision"
        ),
    ),
    by_variant,
    is_optional=True,
    reach="pooled",
    query="judges/variants",
)
_CONFUSION = Figure(
    "judge_confusion",
    "What they disagree on",
    "How often the decisions of two graders meet. On the diagonal they agree; a full corner off it is a bias: the one "
    "says met where the other does not. Pairs with people come first.",
    (
        *_PAIR,
        *columns("says_a says_b n share"),
    ),
    confusing,
    empty="No two graders have decided on the same criteria.",
    reach="pooled",
    query="judges/confusion",
)
_BREAKDOWNS = Figure(
    "judge_breakdowns",
    "Where they disagree",
    "Kappa of the same graders under one label at a time, with 95 % intervals. A dot that is not filled rests on "
    "fewer than 50 criteria. The charts show the pairs with people first, then those with most criteria; the table "
    "has all.",
    (
        *_PAIR,
        *columns("breakdown label"),
        *_MEASURES,
    ),
    by_label,
    empty="No two graders have decided on the same criteria.",
    reach="pooled",
    query="judges/breakdowns",
)
_RELIABILITY = Figure(
    "judge_reliability",
    "Reliability",
    "Krippendorff's alpha of all graders together, and of each judge with itself where it judged the same again: how "
    "much they agree beyond chance. 1 is perfect, 0 is chance.",
    columns("grader_set n_graders alpha alpha_ci_low alpha_ci_high unanimous_share n n_tasks"),
    reliable,
    empty="No criterion has been decided twice.",
    reach="pooled",
    query="judges/reliability",
)
_LENIENCY = Figure(
    "judge_leniency",
    "Leniency",
    "How much more often a grader says met than the others do on the same criteria, in percentage points: to the "
    "right it is more lenient than they are, to the left more severe. Undesired things that an answer does count as "
    "met too.",
    (
        *columns("grader kind leniency"),
        *columns("met_share others_met_share", "Called met", met_share="by it"),
        *columns("n"),
    ),
    lenient,
    empty="No two graders have decided on the same criteria.",
    reach="pooled",
    query="judges/leniency",
)
_FAVOURS = Figure(
    "judge_favours",
    "Judge bias by model",
    "Score that a grader gives a model's answers minus the score that the others give the same answers, beside the "
    "grader's average over the tasks of all models: +0.05 is five points more than its leniency explains. Only answers "
    "that are decided in full by both sides; the latest sampling of each model. An asterisk marks fewer than 50 tasks. "
    "Watch a judge that is of a model's own family.",
    (
        *columns("grader model favour difference"),
        *columns("own_mean others_mean", "Mean score"),
        *columns("n_tasks is_small n_responses"),
    ),
    favouring,
    empty="No answer has been decided in full by two graders.",
    query="judges/favours",
)
_DRIFT = Figure(
    "judge_drift",
    "Drift over nights",
    "Every night each judge decides again on the same old answers: the share that it decides as at first. Below the "
    "control limit, which follows from the earlier nights, or below the configured bar it no longer is the judge that "
    "it was (red), and the scores of that night are not comparable.",
    (
        *columns("grader night agreement centre lower_limit min_agreement cause kappa", agreement="Agreement"),
        *columns("first_met_share met_share", "Called met", met_share="now"),
        *columns("n_members n_decided n_failed n_lost"),
    ),
    drifting,
    empty="No night has judged a control set again. prbench nightly does.",
    reach="warehouse",
    query="judges/drift",
)
_FAILURES = Figure(
    "judge_failures",
    "Failures by cause",
    "Verdicts that brought no decision, by cause, of those on the answers that this report shows. A failed verdict is "
    "undecided: it is never counted as unmet, and its answer has no score.",
    (
        *columns("grader status is_failure n share n_verdicts", n="Verdicts", n_verdicts="of"),
        Column("attempts", "Requests", "count"),
    ),
    failing,
    empty="No judge has decided anything yet.",
    query="judges/failures",
)

JUDGES = Page(
    "judges",
    "Judges",
    "Whether the judges can be believed: how far they agree with people, with each other and with themselves, where "
    "they do not, and whether they stay as they are.",
    (_AGREEMENT, _VARIANTS, _CONFUSION, _BREAKDOWNS, _RELIABILITY, _LENIENCY, _FAVOURS, _DRIFT, _FAILURES),
    has_judging=False,
)
