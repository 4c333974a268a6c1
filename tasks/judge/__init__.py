"""Judge: one call for each criterion of each response, its reply read strictly, every failure kept as its own state."""

from tasks.judge.cascade import judge_criteria
from tasks.judge.context_fit import ContextFit, context_fit_of
from tasks.judge.judge import judge_responses, plan_verdicts
from tasks.judge.provider_batches import judge_by_provider_batches
from tasks.judge.rubric_variants import derive
from tasks.judge.verdict_rows import verdict_columns, verdict_id_of, writing_verdicts

__all__ = [
    "ContextFit",
    "context_fit_of",
    "derive",
    "judge_by_provider_batches",
    "judge_criteria",
    "judge_responses",
    "plan_verdicts",
    "verdict_columns",
    "verdict_id_of",
    "writing_verdicts",
]
