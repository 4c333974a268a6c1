"""The contracts: every stored column once, with its type and meaning, and every stored table with its key.

A column name means the same wherever it stands. What the marts under `sql/` add is described in `sql/schema.yml`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

_TEXT, _INT, _REAL, _FLAG = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TEXTS = pa.list_(pa.string())
_TIME = pa.timestamp("us", tz="UTC")

COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    # what is evaluated
    "benchmark": (_TEXT, "Name of the benchmark."),
    "dataset_revision": (_TEXT, "Revision of the data set: the hub's commit, or the content hash of a file."),
    "split": (_TEXT, "Split of the data set; the hard splits repeat tasks of the full ones."),
    "task_id": (_TEXT, "The task's id in the data set."),
    "field": (_TEXT, "Domain of the task, such as Finance or Legal."),
    "topic": (_TEXT, "Topic within the field."),
    "expert": (_TEXT, "Who asks: Expert or Non-Expert."),
    "turns": (_INT, "Number of user turns, as the data says."),
    "turn_pattern": (_TEXT, "Shape of the conversation: u user, a assistant, e empty user turn, - a gap."),
    "decision_types": (_TEXTS, "Labels: what kind of decision the task asks about."),
    "economic_pathways": (_TEXTS, "Labels: what economic consequence the decision has."),
    "n_criteria": (_INT, "Number of criteria in the rubric."),
    "positive_weight": (_REAL, "Sum of the positive weights, P."),
    "negative_weight": (_REAL, "Sum of the negative weights, N (at most 0)."),
    "has_reference_texts": (_FLAG, "Whether a turn carries reference texts."),
    "n_rows": (_INT, "How often the id stands in a split, or how many different contents it has; 1 is right."),
    "canary": (_TEXT, "Marker that keeps the row out of training corpora; never sent, never beside a text."),
    "criterion_id": (_TEXT, "The criterion's id in the data set."),
    "position": (_INT, "Place in its sequence, from 0."),
    "title": (_TEXT, "The criterion as the judge reads it."),
    "category": (_TEXT, "Rubric category."),
    "weight": (_REAL, "Points for meeting the criterion; negative for something undesired; NULL if no number."),
    "rubric": (_TEXT, "Which wording of the rubric: original, or the name of a variant."),
    "original_id": (_TEXT, "The criterion that this one was made from."),
    "original_hash": (_TEXT, "Hash of that criterion's content when this one was made."),
    "weight_text": (_TEXT, "What stood in the place of a weight that is no number."),
    "severity": (_TEXT, "Weight class of a criterion; on checks the policy: quarantine, warn or fail."),
    "content_hash": (_TEXT, "Hash of the content: of a task all but its canary, of a criterion its title."),
    "kind": (_TEXT, "Kind of label (category, ...), of comparison (leave_one_out, official), or of alert."),
    "label": (_TEXT, "A label that the benchmark knows, or that a task or criterion carries."),
    "min_weight": (_REAL, "Lowest weight of the class."),
    "max_weight": (_REAL, "Highest weight of the class."),
    # scores as data
    "score_name": (_TEXT, "Name of the score."),
    "numerator_negative": (_REAL, "Factor of N in the numerator, beside the points."),
    "denominator_positive": (_REAL, "Factor of P in the denominator."),
    "denominator_negative": (_REAL, "Factor of N in the denominator."),
    "clips_mean": (_FLAG, "Whether a model's mean below 0 is shown as 0; a response's value is never clipped."),
    "is_primary": (_FLAG, "Whether this is the benchmark's main score, which ranks and selects."),
    # conversations and answers
    "conversation_id": (_TEXT, "Hash of the messages as sent."),
    "prompt": (_TEXT, "What the user says in the turn, as the data gives it."),
    "reference_texts": (_TEXTS, "Texts that the user gives along with the prompt."),
    "response": (_TEXT, "The assistant's answer in the turn, as the data gives it; NULL in the last turn."),
    "role": (_TEXT, "user or assistant."),
    "content": (_TEXT, "Text of the turn, reference texts in front."),
    "response_id": (_TEXT, "Hash of the cell: revision, task, conversation, model with parameters, trial, vintage."),
    "model": (_TEXT, "Label of the model that answered."),
    "model_config_hash": (_TEXT, "Hash of the model's name, endpoint and parameters; `imported` if made elsewhere."),
    "served_model": (_TEXT, "The model name that the provider reported."),
    "served_fingerprint": (_TEXT, "The system fingerprint that the provider reported."),
    "input_usd_per_mtok": (_REAL, "Price of a million prompt tokens when the call was made."),
    "cached_usd_per_mtok": (_REAL, "Price of a million prompt tokens served from the provider's cache."),
    "output_usd_per_mtok": (_REAL, "Price of a million tokens of the reply."),
    "price_table": (_TEXT, "Where the prices come from: LiteLLM's table with its version, or the configuration."),
    "trial": (_INT, "Repetition of the sampling, from 1."),
    "vintage": (_TEXT, "Which sampling: base, or a label such as a night's date."),
    "source": (_TEXT, "sampled or judged here, or imported."),
    "import_batch": (_TEXT, "Hash of the file that the row was imported from."),
    "is_retracted": (_FLAG, "Whether the import was retracted; its rows stay in the parts and are not published."),
    "reason": (_TEXT, "Why a response was removed, as the user said."),
    "status": (_TEXT, "What came out: ok, met, partial, unmet or sent, or the kind of failure."),
    "text": (_TEXT, "The answer without the thinking that it starts with; NULL unless status is ok."),
    "chars_alnum": (_INT, "Letters and digits in the answer (paper, figure 7)."),
    "finish_reason": (_TEXT, "Why the model stopped, as the provider reported."),
    "degraded": (_FLAG, "Whether the answer was made with the fall-back parameters."),
    "prompt_tokens": (_INT, "Tokens of the prompt of the deciding call, as reported; of a run, of all its calls."),
    "cached_tokens": (_INT, "Those of the prompt tokens that came from the provider's cache, as reported."),
    "completion_tokens": (_INT, "Tokens of the reply, as reported."),
    "reasoning_tokens": (_INT, "Tokens spent on reasoning, as reported."),
    "cost_usd": (_REAL, "Cost in US dollars, discarded attempts and searches for evidence included; NULL if unknown."),
    "latency_s": (_REAL, "Seconds from sending the last attempt to its reply."),
    "attempts": (_INT, "Requests made for this row, those of a verdict's evidence included."),
    "error": (_TEXT, "Cause of a failure, in one line."),
    "run_id": (_TEXT, "The execution that made the row."),
    "created_at": (_TIME, "When the row was made (UTC)."),
    # verdicts
    "verdict_id": (_TEXT, "Hash of the response and its text, criterion, judge, template, grading and trial."),
    "criterion_hash": (_TEXT, "Hash of the criterion's content when it was judged."),
    "judge": (_TEXT, "Label of the judge."),
    "judge_config_hash": (_TEXT, "Hash of the judge's name, endpoint and parameters; `imported` if made elsewhere."),
    "template_hash": (_TEXT, "Hash of the judge template; `imported` if made elsewhere."),
    "grading": (_TEXT, "binary or ternary; in scores and figures also ternary_as_binary, where partly is not met."),
    "judge_trial": (_INT, "Repetition of the judging, from 1."),
    "value": (_REAL, "Of a verdict 1, 0.5 or 0; of a score its value; NULL when not decided."),
    "explanation": (_TEXT, "The judge's reason."),
    "round": (_INT, "Search for evidence: 1 in the answer, from 2 on in what was found, as long as that is too long."),
    "part_number": (_INT, "Place of the part in what is searched, from 1."),
    "n_parts": (_INT, "Parts that it was cut into."),
    "first_char": (_INT, "Where the part begins in what is searched, in characters from 0."),
    "n_chars": (_INT, "Characters of the part."),
    "evidence": (_TEXTS, "What the judge found in the part, quoted or noted; empty if nothing, NULL after a failure."),
    # quality
    "suite": (_TEXT, "Suite of checks, named for the stage that it follows."),
    "expectation": (_TEXT, "What was expected, as the call that makes it in Great Expectations."),
    "check_name": (_TEXT, "Name of the check, as in the configuration's `quality`."),
    "table_name": (_TEXT, "The rows that were looked at (a query under sql/checks/)."),
    "success": (_FLAG, "Whether every row met the expectation."),
    "n_evaluated": (_INT, "Rows looked at."),
    "n_failed": (_INT, "Rows that failed."),
    "failing_keys": (_TEXTS, "Keys of the failing rows."),
    "detail": (_TEXT, "What was found, for people."),
    # selections and intervals
    "selection_id": (_TEXT, "Hash of what a hard subset was selected from and how."),
    "rank": (_INT, "Place in the order, from 1."),
    "mean_score": (_REAL, "Mean score; of a model over its tasks, of a selected task over the panel's models."),
    "n_models": (_INT, "Models in the panel."),
    "panel": (_TEXTS, "Labels of the panel's models."),
    "majority": (_TEXT, "Name under which the majority of several judges is a grader."),
    "selected_at": (_TIME, "When the subset was selected (UTC)."),
    "is_selected": (_FLAG, "Whether the task is in the selection."),
    "inclusion_probability": (_REAL, "Share of resampled panels (models, trials within them) that select the task."),
    "is_border": (_FLAG, "Whether the panel's chance decides on the task: inclusion between 5 and 95 %."),
    "compared_with": (_TEXT, "What is compared with: a model that is left out, or the data set's own hard split."),
    "n_selected": (_INT, "Tasks of the selection."),
    "n_compared": (_INT, "Tasks of the other selection that this one could have held."),
    "n_shared": (_INT, "Tasks in both."),
    "jaccard": (_REAL, "Tasks in both / tasks in either."),
    "figure_id": (_TEXT, "Hash of what a leaderboard figure is of: task set, label, judging, model, score."),
    "basis": (_TEXT, "Fingerprint of the values that an interval was drawn from; changes when one of them does."),
    "method": (_TEXT, "How the interval or limit was drawn, with a version (tasks/rules/README.md)."),
    "ci_low": (_REAL, "Lower end of the 95 % bootstrap interval over tasks."),
    "ci_high": (_REAL, "Upper end of the 95 % bootstrap interval over tasks."),
    "is_small": (_FLAG, "Whether the figure rests on too few tasks, or too few that differ, for its interval."),
    "trials_mean": (_REAL, "Mean of the repeated evaluations' scores, each clipped by itself (paper, section 5)."),
    "trials_ci_low": (_REAL, "Lower end of the 95 % interval over the repeated evaluations (Student's t)."),
    "trials_ci_high": (_REAL, "Upper end of the 95 % interval over the repeated evaluations (Student's t)."),
    "met_ci_low": (_REAL, "Lower end of the 95 % bootstrap interval of the share of criteria met."),
    "is_met_small": (_FLAG, "Whether the share rests on too few tasks, or too few that differ, for its interval."),
    "met_ci_high": (_REAL, "Upper end of the 95 % bootstrap interval of the share of criteria met."),
    # agreement
    "members": (_TEXTS, "Names of the graders that vote."),
    "kappa": (_REAL, "Cohen's kappa, not weighted; NULL where chance alone agrees always."),
    "kappa_ci_low": (_REAL, "Lower end of the 95 % bootstrap interval over tasks."),
    "kappa_ci_high": (_REAL, "Upper end of the 95 % bootstrap interval over tasks."),
    "macro_f1": (_REAL, "Mean of the F1 of each decision (met, unmet, partial) that either grader made."),
    "macro_f1_ci_low": (_REAL, "Lower end of the 95 % bootstrap interval over tasks."),
    "macro_f1_ci_high": (_REAL, "Upper end of the 95 % bootstrap interval over tasks."),
    "agreement": (_REAL, "Share of criteria on which both decide the same."),
    "agreement_ci_low": (_REAL, "Lower end of the 95 % bootstrap interval over tasks."),
    "agreement_ci_high": (_REAL, "Upper end of the 95 % bootstrap interval over tasks."),
    "alpha": (_REAL, "Krippendorff's alpha for nominal decisions; NULL where all decisions are the same."),
    "alpha_ci_low": (_REAL, "Lower end of the 95 % bootstrap interval over tasks."),
    "alpha_ci_high": (_REAL, "Upper end of the 95 % bootstrap interval over tasks."),
    # the control set
    "set_id": (_TEXT, "Hash of a control set: its judging and the verdicts that it holds."),
    "first_value": (_REAL, "Value of the verdict that a control set holds: 1, 0.5 or 0."),
    "n_decided": (_INT, "Criteria that are decided."),
    "n_agreeing": (_INT, "Those of them that are decided as in the control set."),
    "judge_vintage": (_TEXT, "Which judging of the control set: the label of the night."),
    "min_agreement": (_REAL, "The bar under which agreement was out of control that night; NULL without one."),
    "centre": (_REAL, "Agreement expected from the earlier nights in control; NULL without any."),
    "lower_limit": (_REAL, "Lowest agreement that is in control after those nights; NULL without any."),
    "cause": (_TEXT, "What agreement is below: limit, bar, or limit and bar; NULL in control."),
    # alerts
    "alert_id": (_TEXT, "Hash of the run and of what the alert says."),
    "subject": (_TEXT, "Label of the model or judge that an alert is about; empty for the night itself."),
    "facts": (_TEXT, "The figures of an alert as a JSON object."),
    "receiver": (_TEXT, "Who got it: kind and place among the configured ones (slack 2), or ping; no address."),
    "n_alerts": (_INT, "Alerts in the message; 0 for a ping."),
    # runs
    "command": (_TEXT, "What was run."),
    "config": (_TEXT, "The configuration as JSON; secrets are never part of it."),
    "git_commit": (_TEXT, "Commit of the pipeline's checkout, if it is one."),
    "started_at": (_TIME, "Start of the run (UTC)."),
    "ended_at": (_TIME, "End of the run (UTC); NULL while it goes on, or if it was killed."),
    "outcome": (_TEXT, "running, done, below_bar, failed, interrupted, stopped_at_budget, stopped_at_time or killed."),
    "night": (_TEXT, "Label of the night, which is also a vintage; NULL for a run that was none."),
    "responses_made": (_INT, "Responses that this run sampled."),
    "verdicts_made": (_INT, "Verdicts that this run judged."),
    "calls": (_INT, "Requests that the run sent, discarded attempts included."),
    "day": (_TEXT, "Day on which calls ended (UTC), as an ISO date."),
    "purpose": (_TEXT, "What calls were made for: sample, judge, drift or derive; unknown if not noted."),
    "called_model": (_TEXT, "The model as it was called, by LiteLLM's name."),
    "failed_calls": (_INT, "Those of the calls that brought no text: refused, cut, failed or turned away."),
    "unpriced_calls": (_INT, "Those of the calls whose cost nobody knows; they are not in the cost."),
    "cached_share": (_REAL, "Share of the prompt tokens served from the provider's cache; NULL if none was reported."),
}  # fmt: skip

_TASK = "benchmark dataset_revision task_id"
_JUDGING = "judge judge_config_hash template_hash grading judge_trial"
_USAGE = "prompt_tokens cached_tokens completion_tokens"
_WRITER = "model model_config_hash served_model served_fingerprint template_hash"
_OUTCOME = (
    "cost_usd input_usd_per_mtok cached_usd_per_mtok output_usd_per_mtok price_table latency_s attempts error run_id "
    "created_at"
)


@dataclass(frozen=True)
class Table:
    """A stored table: what one row is, its columns in order, its key, and which of two rows with one key stands.

    `keeps` is `latest` (the newer part's row stands) or `decided` (a row with a usable status stands; a failed one
    gives way to a newer). `indexes` are the columns by which single rows are looked up. `models_read` is the condition
    on the rows that models of `sql/` read, where it is not all: a part without such a row changes no model.
    """

    name: str
    meaning: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    keeps: Literal["latest", "decided"] = "latest"
    indexes: tuple[str, ...] = ()
    models_read: str | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema that every part of this table carries."""
        return pa.schema([pa.field(column, COLUMNS[column][0]) for column in self.columns])

    @cached_property
    def text(self) -> str:
        """All that is said of the table and its columns."""
        return repr((self, [(column, str(COLUMNS[column])) for column in self.columns]))


def _table(
    name: str, meaning: str, columns: str, key: str, keeps: Literal["latest", "decided"] = "latest", indexes: str = "",
    models_read: str | None = None,
) -> Table:  # fmt: skip
    return Table(name, meaning, tuple(columns.split()), tuple(key.split()), keeps, tuple(indexes.split()), models_read)


_TABLES = (
    _table("task_rows", "A task of a data-set revision, as ingested.",
           f"{_TASK} field topic expert turns turn_pattern decision_types economic_pathways n_criteria "
           "positive_weight negative_weight has_reference_texts n_rows conversation_id content_hash", _TASK),
    _table("split_members", "A task's place in a split, with its canary.",
           "benchmark dataset_revision split task_id position canary", "benchmark dataset_revision split task_id"),
    _table("criteria", "A criterion of a task, those of refused tasks too.",
           f"{_TASK} criterion_id position title category weight weight_text severity content_hash",
           f"{_TASK} position"),
    _table("criterion_variants", "A criterion in other words, with a link to the one that it was made from.",
           f"{_TASK} rubric criterion_id original_id original_hash title content_hash status {_WRITER} {_USAGE} "
           f"{_OUTCOME}", f"{_TASK} rubric original_id original_hash", "decided"),
    _table("conversation_turns", "A user turn of a task as ingested, with references and the assistant's answer.",
           f"{_TASK} position prompt reference_texts response", f"{_TASK} position"),
    _table("task_labels", "A label of a task, of a kind that only some benchmarks have.",
           f"{_TASK} kind label", f"{_TASK} kind label"),
    _table("criterion_labels", "A label of a criterion, of a kind that only some benchmarks have.",
           f"{_TASK} criterion_id kind label", f"{_TASK} criterion_id kind label"),
    _table("labels", "A label that a benchmark knows for a field; an empty field stands for all.",
           "benchmark field kind label", "benchmark field kind label"),
    _table("severities", "A weight class of a benchmark and its band of weights.",
           "benchmark severity min_weight max_weight", "benchmark severity"),
    _table("score_definitions", "A score that a benchmark declares, as factors of sums.",
           "benchmark score_name numerator_negative denominator_positive denominator_negative clips_mean is_primary",
           "benchmark score_name"),
    _table("message_rows", "A conversation turn as sent.",
           f"{_TASK} conversation_id position role content", f"{_TASK} conversation_id position"),
    _table("responses", "One model's answer to one task in one trial and vintage.",
           f"response_id {_TASK} conversation_id model model_config_hash served_model served_fingerprint trial vintage "
           f"source import_batch status text chars_alnum finish_reason degraded {_USAGE} reasoning_tokens {_OUTCOME}",
           "response_id", "decided", indexes="response_id"),
    _table("verdicts", "One judge's decision on one criterion of one response.",
           f"verdict_id response_id {_TASK} criterion_id criterion_hash model trial vintage judge judge_config_hash "
           "served_model served_fingerprint template_hash grading judge_trial source import_batch status value "
           f"explanation {_USAGE} {_OUTCOME}",
           "verdict_id", "decided", indexes="verdict_id response_id"),
    _table("evidence", "What a judge found on a criterion in one part of an answer that is too long for it.",
           f"verdict_id response_id {_TASK} criterion_id round part_number n_parts first_char n_chars served_model "
           f"served_fingerprint status evidence {_USAGE} {_OUTCOME}",
           "verdict_id round n_parts part_number", "decided"),
    _table("retractions", "An imported file that was retracted, or restored after that.",
           "import_batch is_retracted run_id created_at", "import_batch"),
    _table("removals", "A response that was removed: what was made of it until then, and rests on it, is left out.",
           "response_id reason run_id created_at", "response_id"),
    _table("checks", "One expectation of one run.",
           "run_id benchmark dataset_revision suite check_name expectation table_name severity success n_evaluated "
           "n_failed failing_keys created_at",
           "run_id benchmark dataset_revision suite check_name expectation table_name",
           models_read="suite = 'ingest'"),
    _table("refusals", "A task refused by a check in one run.",
           f"run_id {_TASK} check_name severity detail created_at", f"run_id {_TASK} check_name"),
    _table("hard_subset", "A task selected as hard.",
           "selection_id benchmark dataset_revision field task_id rank mean_score n_models panel selected_at",
           "selection_id task_id"),
    _table("hard_stability", "A task that a hard selection chose from, with how surely it belongs there.",
           "selection_id benchmark dataset_revision field task_id mean_score is_selected inclusion_probability "
           "is_border", "selection_id task_id"),
    _table("hard_overlaps", "How much a hard selection shares with another one of the same tasks.",
           "selection_id benchmark dataset_revision field kind compared_with n_selected n_compared n_shared jaccard",
           "selection_id kind compared_with"),
    _table("intervals", "The intervals of a leaderboard figure, with a fingerprint of the values they belong to.",
           "figure_id basis method ci_low ci_high is_small trials_mean trials_ci_low trials_ci_high met_ci_low "
           "met_ci_high is_met_small created_at", "figure_id"),
    _table("grader_panels", "Judges whose majority is a grader of its own, as configured.",
           "benchmark majority members created_at", "benchmark majority"),
    _table("agreement_measures", "Agreement of two graders, with a fingerprint of the decisions it belongs to.",
           "figure_id basis method kappa kappa_ci_low kappa_ci_high macro_f1 macro_f1_ci_low macro_f1_ci_high "
           "agreement agreement_ci_low agreement_ci_high created_at", "figure_id"),
    _table("reliability_measures", "Agreement within a set of graders, with a fingerprint of the decisions.",
           "figure_id basis method alpha alpha_ci_low alpha_ci_high created_at", "figure_id"),
    _table("control_set", "A verdict that is judged again every night, with what it was at first; never changed.",
           f"set_id {_TASK} {_JUDGING} verdict_id response_id conversation_id criterion_id criterion_hash model trial "
           "vintage first_value run_id created_at",
           "set_id verdict_id"),
    _table("control_verdicts", "What a judge decided in one night on a member of its control set; never scored.",
           f"set_id judge_vintage verdict_id response_id {_TASK} criterion_id criterion_hash model trial vintage "
           "judge judge_config_hash served_model served_fingerprint template_hash grading judge_trial status value "
           f"explanation {_USAGE} {_OUTCOME}",
           "set_id judge_vintage response_id criterion_id criterion_hash", "decided"),
    _table("control_limits", "A night of a control set beside what is expected of it after the earlier ones.",
           "set_id night n_decided n_agreeing min_agreement method centre lower_limit cause created_at",
           "set_id night"),
    _table("alerts", "One thing about a run that somebody had to know.",
           "alert_id run_id night benchmark kind subject detail facts created_at", "alert_id"),
    _table("alert_deliveries", "What became of the message of a run's alerts, or of its ping, to one receiver.",
           "run_id night receiver status attempts error n_alerts created_at", "run_id receiver"),
    _table("runs", "One execution.",
           "run_id command night config git_commit started_at ended_at outcome responses_made verdicts_made "
           "calls prompt_tokens cached_tokens completion_tokens cached_share cost_usd",
           "run_id"),
    _table("spend", "What all calls of a run came to on a day, for a purpose, with a model; discarded ones included.",
           f"run_id day purpose called_model calls failed_calls unpriced_calls {_USAGE} cost_usd created_at",
           "run_id day purpose called_model"),
)  # fmt: skip

TABLES: dict[str, Table] = {table.name: table for table in _TABLES}
DECIDED_STATUSES = ("ok", "met", "partial", "unmet")
