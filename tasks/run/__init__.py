"""What a stage runs in: run context, missing work, coverage, parts, its report."""

from tasks.run.analysis import Analysis, Columns, Item, ask_about
from tasks.run.conversations import Conversation, conversations_of, messages_to
from tasks.run.coverage import Covered, coverage
from tasks.run.judgings import (
    CascadeJudgings,
    Judging,
    first_judging,
    hash_of_template,
    judgings,
    refuse_unlike_gradings,
    template_of,
)
from tasks.run.keys import callees
from tasks.run.missing_work import (
    PASSING,
    MissingVerdicts,
    WantedTasks,
    imported_models,
    missing_criteria,
    missing_responses,
    missing_splits,
    missing_verdicts,
    unworded_criteria,
    wanted_rubrics,
    wanted_tasks,
)
from tasks.run.part_writer import NO_CALL, PartWriter, judge_target, target_of, usage_columns
from tasks.run.provider_batches import submit_and_collect
from tasks.run.questions import Found, Question, ask, together
from tasks.run.run_context import (
    LEDGER,
    RunContext,
    open_run_context,
    refuse_uninstalled,
    refuse_unready,
    run_context_of,
    unbounded,
    used_by,
)
from tasks.run.sender_states import sender_states
from tasks.run.stage_report import LEFT_OUT, StageReport
from tasks.run.stages import CALLED_ROLES, STAGES
from tasks.run.stopped_work import (
    EARLIER,
    Compared,
    Comparison,
    Progress,
    StoppingPlan,
    earlier_values,
    left_out_of,
    stopping_plan,
)
from tasks.run.stored_data import nothing_of_vintage, on_stored_data, stored_in_words

__all__ = [
    "CALLED_ROLES",
    "EARLIER",
    "LEDGER",
    "LEFT_OUT",
    "NO_CALL",
    "PASSING",
    "STAGES",
    "Analysis",
    "CascadeJudgings",
    "Columns",
    "Compared",
    "Comparison",
    "Conversation",
    "Covered",
    "Found",
    "Item",
    "Judging",
    "MissingVerdicts",
    "PartWriter",
    "Progress",
    "Question",
    "RunContext",
    "StageReport",
    "StoppingPlan",
    "WantedTasks",
    "ask",
    "ask_about",
    "callees",
    "conversations_of",
    "coverage",
    "earlier_values",
    "first_judging",
    "hash_of_template",
    "imported_models",
    "judge_target",
    "judgings",
    "left_out_of",
    "messages_to",
    "missing_criteria",
    "missing_responses",
    "missing_splits",
    "missing_verdicts",
    "nothing_of_vintage",
    "on_stored_data",
    "open_run_context",
    "refuse_uninstalled",
    "refuse_unlike_gradings",
    "refuse_unready",
    "run_context_of",
    "sender_states",
    "stopping_plan",
    "stored_in_words",
    "submit_and_collect",
    "target_of",
    "template_of",
    "together",
    "unbounded",
    "unworded_criteria",
    "usage_columns",
    "used_by",
    "wanted_rubrics",
    "wanted_tasks",
]
