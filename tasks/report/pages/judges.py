"""Judges: how far they agree with people, with each other and with themselves, and whether they stay as they are."""

from tasks.report.content.columns import Column, columns
from tasks.report.content.figures import Figure, Page
from tasks.report.pages.analyses.cascades import DECISIONS
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
    "How often two graders agree on the criteria that both decided, over the responses of all vintages: 1 is always; "
    "a kappa of 0 is agreement by chance. Lines are 95 % intervals for other tasks of the same kind. Partly met is a "
    "verdict of its own, unless it is read as binary; in the shares called met it counts half. A majority always tends "
    "to agree with its own members, so such pairs are in the table only.",
    (
        *_PAIR,
        *_MEASURES,
        *columns("is_member"),
    ),
    agreeing,
    empty="No two graders have decided the same criteria. Configure a second judge, judge again, or import human "
    "labels.",
    reach="pooled",
    query="judges/agreement",
)
_VARIANTS = Figure(
    "variant_agreement",
    "Agreement with people, by rubric and grading",
    "Macro-F1 of each grader against imported verdicts (usually people's), for each wording of the rubric and each "
    "grading, with 95 % intervals. The charts pool all criteria. The table also has the mean over tasks, once with "
    "only the verdicts that occur in a task, and once with absent ones as 0, as in the published code. It is harder to "
    "agree on three steps than on two, so do not compare gradings. A hollow dot is based on fewer than 50 criteria.",
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
    "Verdicts of two graders compared",
    "The verdicts of two graders on the same criteria. On the diagonal they agree; a high share off the diagonal is a "
    "bias: one grader says met where the other does not. Pairs with people come first.",
    (
        *_PAIR,
        *columns("says_a says_b n share"),
    ),
    confusing,
    empty="No two graders have decided the same criteria.",
    reach="pooled",
    query="judges/confusion",
)
_BREAKDOWNS = Figure(
    "judge_breakdowns",
    "Agreement by label",
    "Kappa of the same graders for one label at a time, with 95 % intervals. A hollow dot is based on fewer than 50 "
    "criteria. The charts show pairs with people first, then those with most criteria; the table has all pairs.",
    (
        *_PAIR,
        *columns("breakdown label"),
        *_MEASURES,
    ),
    by_label,
    empty="No two graders have decided the same criteria.",
    reach="pooled",
    query="judges/breakdowns",
)
_RELIABILITY = Figure(
    "judge_reliability",
    "Reliability",
    "Krippendorff's alpha: agreement beyond chance, of all graders together and of each judge with its own repeated "
    "verdicts. 1 is perfect agreement, 0 is chance.",
    columns("grader_set n_graders alpha alpha_ci_low alpha_ci_high unanimous_share n n_tasks"),
    reliable,
    empty="No criterion has two verdicts.",
    reach="pooled",
    query="judges/reliability",
)
_LENIENCY = Figure(
    "judge_leniency",
    "Leniency",
    "How much more often a grader says met than the others do on the same criteria, in percentage points: more lenient "
    "to the right, more severe to the left. Criteria with a negative weight are included: there, met means that the "
    "response makes the mistake.",
    (
        *columns("grader kind leniency"),
        *columns("met_share others_met_share", "Called met", met_share="by it"),
        *columns("n"),
    ),
    lenient,
    empty="No two graders have decided the same criteria.",
    reach="pooled",
    query="judges/leniency",
)
_FAVOURS = Figure(
    "judge_favours",
    "Judge bias by model",
    "The score that a grader gives a model's responses minus the score that the other graders give them, compared with "
    "the grader's average difference over all models: +0.05 is five points more than its leniency explains. Only "
    "responses that both sides decided in full, of each model's latest vintage. An asterisk marks fewer than 50 "
    "tasks. Check judges of the same family as a model with care.",
    (
        *columns("grader model favour difference"),
        *columns("own_mean others_mean", "Mean score"),
        *columns("n_tasks is_small n_responses"),
    ),
    favouring,
    empty="No response has been decided in full by two graders.",
    query="judges/favours",
)
_DRIFT = Figure(
    "judge_drift",
    "Drift over nights",
    "Every night each judge judges the same old responses again (its control set). The chart shows the share of "
    "verdicts that are the same as the first ones. Below the control limit, which earlier nights determine, or below "
    "the configured minimum, the judge has drifted (red), and the scores of that night are not comparable.",
    (
        *columns("grader night agreement centre lower_limit min_agreement cause kappa", agreement="Agreement"),
        *columns("first_met_share met_share", "Called met", met_share="now"),
        *columns("n_members n_decided n_failed n_lost"),
    ),
    drifting,
    empty="No night has judged a control set yet; prbench nightly does.",
    reach="warehouse",
    query="judges/drift",
)
_FAILURES = Figure(
    "judge_failures",
    "Failures by cause",
    "Failed verdicts on the responses of this report, by cause. A failed verdict is undecided: it is never counted as "
    "not met, and its response has no score.",
    (
        *columns("grader status is_failure n share n_verdicts", n="Verdicts", n_verdicts="of"),
        Column("attempts", "Calls", "count"),
    ),
    failing,
    empty="No judge has judged anything yet.",
    query="judges/failures",
)

JUDGES = Page(
    "judges",
    "Judges",
    "Whether the judges can be trusted: how far they agree with people, with each other and with themselves, where "
    "they disagree, and whether they drift.",
    (_AGREEMENT, _VARIANTS, _CONFUSION, _BREAKDOWNS, _RELIABILITY, _LENIENCY, _FAVOURS, DECISIONS, _DRIFT, _FAILURES),
    has_judging=False,
)
