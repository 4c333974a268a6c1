"""Every stored table with its columns and key.

`sql/schema.yml` describes the columns that marts add.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import pyarrow as pa

from warehouse.columns import COLUMNS

OF_SOME_JUDGES = ("probability", "confidence", "n_in_call", "position_in_call", "piece_hash")
"""Columns that only the verdicts of some judges fill."""

# Groups of columns that several tables have, as names with a space between them.
_DATA = "benchmark dataset_revision"
_TASK = f"{_DATA} task_id"
_BY_JUDGE = "judge judge_config_hash template_hash grading judge_trial"
_CRITERION = f"{_TASK} criterion_id criterion_hash"
_SERVED = "served_model served_fingerprint template_hash"
_JUDGED = f"model trial vintage judge judge_config_hash {_SERVED} grading judge_trial"
_USAGE = "prompt_tokens cached_tokens completion_tokens"
_WRITER = f"model model_config_hash {_SERVED}"
_PRICES = "input_usd_per_mtok cached_usd_per_mtok output_usd_per_mtok price_table"
_OUTCOME = f"cost_usd {_PRICES} latency_s attempts error run_id created_at"
_GROUNDS = f"{' '.join(OF_SOME_JUDGES)} decided_by escalated_because"
_DECISION = f"status value explanation {_GROUNDS} {_USAGE} {_OUTCOME}"


def _quoted(column: str) -> str:
    """Return a column's name as an identifier of SQL."""
    return f'"{column}"'


class StoredTable:
    """A stored table: its columns, its key, and the rule for rows with the same key.

    Args:
        meaning: the meaning of a row.
        columns: the names of the columns in order, with a space between them.
        key: the names of the columns that identify a row.
        keeps: `latest` (the newer part's row is current) or `decided` (a row with a usable status
            stays; a failed one is replaced by a newer one).
        models_read: the condition on the rows that models of `sql/` read, if not all: a part
            without such a row changes no model.
        conversions: for columns whose values had another convention in an earlier
            version, the expression of the present value.
    """

    def __init__(
        self,
        name: str,
        meaning: str,
        columns: str,
        key: str,
        keeps: Literal["latest", "decided"] = "latest",
        models_read: str | None = None,
        conversions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.meaning = meaning
        self.keeps = keeps
        self.models_read = models_read
        self.columns = tuple(columns.split())
        self.key = tuple(key.split())
        self.schema = pa.schema([(column, COLUMNS[column].type) for column in self.columns])
        self.selected = ", ".join(
            f"{conversions.get(column, _quoted(column))} as {_quoted(column)}"
            for column in self.columns
        )
        """The list of columns for a query of stored rows, converted to the present convention."""
        self.text = repr((vars(self), [(column, COLUMNS[column]) for column in self.columns]))
        """The full definition of the table and its columns, as text."""


_IS_CURRENT = "is_second_minus_first or compared_vintage = 'earlier nights'"
_SECOND_MINUS_FIRST = {
    "is_second_minus_first": "true",
    "mean_difference": f"if({_IS_CURRENT}, mean_difference, 0 - mean_difference)",
    "unbiased_difference": f"if({_IS_CURRENT}, unbiased_difference, 0 - unbiased_difference)",
    "sequence_low": f"if({_IS_CURRENT}, sequence_low, 0 - sequence_high)",
    "sequence_high": f"if({_IS_CURRENT}, sequence_high, 0 - sequence_low)",
}
"""Looks of earlier versions have differences of two models as first minus second."""

TABLES: dict[str, StoredTable] = {
    table.name: table
    for table in (
        # Retractions and removals are loaded first, as they affect all others; responses before the
        # rows about them.
        StoredTable(
            "retractions",
            "An imported file that was retracted, or restored after that.",
            "import_batch is_retracted run_id created_at",
            key="import_batch",
        ),
        StoredTable(
            "removals",
            "A removed response; its rows until then, and all rows that depend on it, are left"
            " out.",
            "response_id reason run_id created_at",
            key="response_id",
        ),
        StoredTable(
            "task_rows",
            "A task of a data-set revision, as ingested.",
            f"{_TASK} field topic expert turns turn_pattern decision_types economic_pathways"
            " n_criteria positive_weight negative_weight has_reference_texts n_rows"
            " conversation_id content_hash",
            key=_TASK,
        ),
        StoredTable(
            "split_members",
            "The membership of a task in a split, with its canary.",
            f"{_DATA} split task_id position canary",
            key=f"{_DATA} split task_id",
        ),
        StoredTable(
            "criteria",
            "A criterion of a task, including refused tasks.",
            f"{_TASK} criterion_id position title category weight weight_text severity"
            " content_hash",
            key=f"{_TASK} position",
        ),
        StoredTable(
            "criterion_variants",
            "A rewritten criterion, with the id of the original one.",
            f"{_TASK} rubric criterion_id original_id original_hash title content_hash status"
            f" {_WRITER} {_USAGE} {_OUTCOME}",
            key=f"{_TASK} rubric original_id original_hash",
            keeps="decided",
        ),
        StoredTable(
            "conversation_turns",
            "A user turn of a task as ingested, with references and the assistant's reply.",
            f"{_TASK} position prompt reference_texts response",
            key=f"{_TASK} position",
        ),
        StoredTable(
            "task_labels",
            "A label of a task, of a kind that only some benchmarks have.",
            f"{_TASK} kind label",
            key=f"{_TASK} kind label",
        ),
        StoredTable(
            "criterion_labels",
            "A label of a criterion, of a kind that only some benchmarks have.",
            f"{_TASK} criterion_id kind label",
            key=f"{_TASK} criterion_id kind label",
        ),
        StoredTable(
            "labels",
            "A label that a benchmark knows for a field; an empty field stands for all.",
            "benchmark field kind label",
            key="benchmark field kind label",
        ),
        StoredTable(
            "severities",
            "A weight class of a benchmark and its band of weights.",
            "benchmark severity min_weight max_weight",
            key="benchmark severity",
        ),
        StoredTable(
            "score_definitions",
            "A score that a benchmark declares, as factors of sums.",
            "benchmark score_name numerator_negative denominator_positive denominator_negative"
            " clips_mean is_primary",
            key="benchmark score_name",
        ),
        StoredTable(
            "message_rows",
            "A conversation turn as sent.",
            f"{_TASK} conversation_id position role content",
            key=f"{_TASK} conversation_id position",
        ),
        StoredTable(
            "responses",
            "One model's response to one task in one trial and vintage.",
            f"response_id {_TASK} conversation_id model model_config_hash served_model"
            " served_fingerprint trial vintage source import_batch status text chars_alnum"
            f" finish_reason degraded {_USAGE} reasoning_tokens {_OUTCOME}",
            key="response_id",
            keeps="decided",
        ),
        StoredTable(
            "verdicts",
            "One judge's decision on one criterion of one response.",
            f"verdict_id response_id {_CRITERION} {_JUDGED} source import_batch may_hide_failures"
            f" {_DECISION}",
            key="verdict_id",
            keeps="decided",
        ),
        StoredTable(
            "cascade_rules",
            "A rule that sends criteria from a cheap to a strong judge, with its held-out figures.",
            f"evaluation_id {_DATA} cheap_judge strong_judge evaluated_splits position rule"
            " is_on_front is_picked n_paired n_tasks escalated_share escalated_share_ci_low"
            " escalated_share_ci_high strong_calls cheap_calls thousand_usd thousand_usd_ci_low"
            " thousand_usd_ci_high agreement agreement_ci_low agreement_ci_high kappa kappa_ci_low"
            " kappa_ci_high macro_f1 macro_f1_ci_low macro_f1_ci_high ranking_tau"
            " ranking_tau_ci_low ranking_tau_ci_high score_change score_change_ci_low"
            " score_change_ci_high changed_model n_ranked_responses is_small created_at",
            key="evaluation_id position",
        ),
        StoredTable(
            "analysts",
            "A model of an analysis, as configured in its last run; only rows of that configuration"
            " count.",
            "benchmark purpose analyst analyst_config_hash created_at",
            key="benchmark purpose analyst",
        ),
        StoredTable(
            "task_annotations",
            "The labels of one kind that a model gave a task in one trial.",
            f"annotation_id {_TASK} conversation_id kind annotator annotator_config_hash"
            " served_model served_fingerprint template_hash trial status primary_label"
            f" secondary_labels explanation {_USAGE} {_OUTCOME}",
            key="annotation_id",
            keeps="decided",
        ),
        StoredTable(
            "evidence",
            "A judge's evidence on a criterion from one chunk of a response that is too long"
            " for it.",
            f"verdict_id response_id {_TASK} criterion_id round chunk_number n_chunks first_char"
            f" n_chars served_model served_fingerprint status evidence {_USAGE} {_OUTCOME}",
            key="verdict_id round n_chunks chunk_number",
            keeps="decided",
        ),
        StoredTable(
            "checks",
            "The result of one expectation in one run.",
            f"run_id {_DATA} suite check_name expectation table_name severity success n_evaluated"
            " n_failed failing_keys created_at",
            key=f"run_id {_DATA} suite check_name expectation table_name",
            models_read="suite = 'ingest'",
        ),
        StoredTable(
            "refusals",
            "A task refused by a check in one run.",
            f"run_id {_TASK} check_name severity detail created_at",
            key=f"run_id {_TASK} check_name",
        ),
        StoredTable(
            "hard_subset",
            "A task selected as hard.",
            f"selection_id {_DATA} field task_id rank mean_score n_models panel selected_at",
            key="selection_id task_id",
        ),
        StoredTable(
            "hard_stability",
            "A task that a hard selection chose from, with the stability of its membership.",
            f"selection_id {_DATA} field task_id mean_score is_selected inclusion_probability"
            " is_border",
            key="selection_id task_id",
        ),
        StoredTable(
            "hard_overlaps",
            "The overlap of a hard selection with another one of the same tasks.",
            f"selection_id {_DATA} field kind compared_with n_selected n_compared n_shared jaccard",
            key="selection_id kind compared_with",
        ),
        StoredTable(
            "measures",
            "A measure of a figure with its interval, and a fingerprint of the values that it"
            " belongs to.",
            "figure_id basis method measure value ci_low ci_high p_value n is_small note"
            " created_at",
            key="figure_id measure",
        ),
        StoredTable(
            "criterion_capabilities",
            "The capability that a criterion needs, as a short phrase that a model wrote.",
            f"capability_id {_TASK} criterion_id criterion_hash phrase status {_WRITER} {_USAGE}"
            f" {_OUTCOME}",
            key="capability_id",
            keeps="decided",
        ),
        StoredTable(
            "phrase_embeddings",
            "The vector of a phrase.",
            f"embedding_id {_DATA} phrase vector status {_WRITER} {_USAGE} {_OUTCOME}",
            key="embedding_id",
            keeps="decided",
        ),
        StoredTable(
            "capability_names",
            "A name that a model wrote for a node of a tree of capabilities.",
            f"name_id {_DATA} node_id attempt name status {_WRITER} {_USAGE} {_OUTCOME}",
            key="name_id",
            keeps="decided",
        ),
        StoredTable(
            "capability_trees",
            "The current tree of capabilities of a field.",
            f"{_DATA} field tree_id vectors method n_criteria n_tasks created_at",
            key=f"{_DATA} field",
        ),
        StoredTable(
            "capability_node_rows",
            "A node of a tree of capabilities.",
            f"tree_id node_id {_DATA} field parent_id level position is_leaf name n_criteria"
            " n_tasks created_at",
            key="tree_id node_id",
        ),
        StoredTable(
            "capability_members",
            "A criterion in a node of a tree of capabilities, in each node above it too.",
            f"tree_id node_id {_TASK} criterion_id criterion_hash is_leaf",
            key="tree_id node_id task_id criterion_id",
        ),
        StoredTable(
            "capability_analyses",
            "The latest comparison under each judge, with a fingerprint of its inputs.",
            f"{_DATA} {_BY_JUDGE} analysis_id method created_at",
            key=f"{_DATA} {_BY_JUDGE}",
        ),
        StoredTable(
            "capability_measures",
            "A model's score in a node of a tree of capabilities, with its interval.",
            f"analysis_id tree_id node_id {_DATA} {_BY_JUDGE} vintage model model_config_hash value"
            " ci_low ci_high is_small n_tasks n_criteria n_decided created_at",
            key="analysis_id tree_id node_id vintage model model_config_hash",
        ),
        StoredTable(
            "weakness_candidates",
            "A node in which a model was found weak, with its result on the other tasks.",
            f"analysis_id tree_id node_id {_DATA} {_BY_JUDGE} vintage model model_config_hash"
            " compared_key compared_model compared_vintage compared_config_hash value"
            " compared_value gap gap_ci_low gap_ci_high is_small n_tasks p_confirmed is_confirmed"
            " found_gap n_tasks_found p_found method created_at",
            key="analysis_id tree_id node_id vintage model model_config_hash compared_key",
        ),
        StoredTable(
            "grader_sets",
            "A configured majority: several judges that together are one grader.",
            "benchmark majority members created_at",
            key="benchmark majority",
        ),
        StoredTable(
            "condition_sets",
            "A model with its conditions, as configured.",
            "benchmark shared_model condition_names condition_models created_at",
            key="benchmark shared_model",
        ),
        StoredTable(
            "coverage_rules",
            "The trials that a configuration wants of a model in a vintage, and the coverage that a"
            " current vintage needs; an empty model stands for all others of the benchmark.",
            "benchmark model model_config_hash vintage wanted_trials min_coverage created_at",
            key="benchmark model model_config_hash vintage",
        ),
        StoredTable(
            "stopping_looks",
            "A comparison after one block of tasks, in a run that stops when comparisons are"
            " settled.",
            f"stopping_id {_DATA} {_BY_JUDGE} score_name model model_config_hash vintage"
            " compared_model compared_config_hash compared_vintage block n_tasks n_tasks_evaluated"
            " n_tasks_planned is_second_minus_first mean_difference unbiased_difference"
            " sequence_low sequence_high comparison_alpha least_difference decision run_id"
            " created_at",
            key="stopping_id model vintage compared_model compared_vintage block",
            conversions=_SECOND_MINUS_FIRST,
        ),
        StoredTable(
            "stopping_scores",
            "A model's score on the random part of a split that was evaluated when a run stopped.",
            f"{_DATA} split {_BY_JUDGE} vintage model model_config_hash score_name stopping_id"
            " n_tasks n_tasks_evaluated n_tasks_skipped sequence_low sequence_high"
            " unbiased_mean_score run_id created_at",
            key=f"{_DATA} split {_BY_JUDGE} vintage model model_config_hash score_name",
        ),
        StoredTable(
            "review_samples",
            "A criterion that a sheet for reviewers samples, with its probability of being"
            " sampled.",
            f"sample_id {_TASK} criterion_id criterion_hash population_id n_population design"
            " stratum probability run_id created_at",
            key="sample_id task_id criterion_id",
        ),
        StoredTable(
            "expert_reviews",
            "A person's review of a criterion: 1 for agree, 0 for disagree.",
            f"review_id {_TASK} criterion_id criterion_hash reviewer sample_id import_batch value"
            " explanation better_wording run_id created_at",
            key="review_id",
        ),
        StoredTable(
            "model_reviews",
            "A model's review of a criterion: one call with all checks.",
            f"review_id {_TASK} criterion_id criterion_hash reviewer reviewer_config_hash"
            f" served_model served_fingerprint template_hash review_trial status findings {_USAGE}"
            f" {_OUTCOME}",
            key="review_id",
            keeps="decided",
        ),
        StoredTable(
            "labellers",
            "A person whose imported verdicts are labels, as stated by a sheet or the user.",
            "benchmark judge import_batch created_at",
            key="benchmark judge import_batch",
        ),
        StoredTable(
            "label_sheets",
            "A sheet of verdicts for people to label, or labels that are stated to be a random"
            " sample.",
            f"sheet_id {_DATA} design covered_breakdown covered_label covered_responses"
            " n_population n_drawn seed import_batch run_id created_at",
            key="sheet_id",
        ),
        StoredTable(
            "label_draws",
            "A verdict that a sheet samples, or that already had a label before the sheet.",
            f"sheet_id {_TASK} response_id criterion_id criterion_hash probability is_known",
            key="sheet_id response_id criterion_id criterion_hash",
        ),
        StoredTable(
            "control_set",
            "A verdict that is judged again every night, with its first value; never changed.",
            f"set_id {_TASK} {_BY_JUDGE} verdict_id response_id conversation_id criterion_id"
            " criterion_hash model trial vintage first_value run_id created_at",
            key="set_id verdict_id",
        ),
        StoredTable(
            "control_verdicts",
            "A judge's decision in one night on a member of its control set; never scored.",
            f"set_id judge_vintage verdict_id response_id {_CRITERION} {_JUDGED} {_DECISION}",
            key="set_id judge_vintage response_id criterion_id criterion_hash",
            keeps="decided",
        ),
        StoredTable(
            "neighbour_verdicts",
            "A judge's decision in an arrangement of criteria in calls; never scored.",
            f"verdict_id arrangement response_id {_CRITERION} {_JUDGED} {_DECISION}",
            key="verdict_id",
            keeps="decided",
        ),
        StoredTable(
            "control_limits",
            "A night of a control set, with the agreement expected from the earlier nights.",
            "set_id night n_decided n_agreeing min_agreement method centre lower_limit cause"
            " created_at",
            key="set_id night",
        ),
        StoredTable(
            "alerts",
            "An alert about a run.",
            "alert_id run_id night benchmark kind subject detail facts created_at",
            key="alert_id",
        ),
        StoredTable(
            "alert_deliveries",
            "The delivery of a run's alerts, or of its ping, to one receiver.",
            "run_id night receiver status attempts error n_alerts alert_ids created_at",
            key="run_id receiver",
        ),
        StoredTable(
            "runs",
            "One execution.",
            "run_id command night config git_commit started_at ended_at outcome responses_made"
            " verdicts_made calls prompt_tokens cached_tokens completion_tokens cached_share"
            " cost_usd",
            key="run_id",
        ),
        StoredTable(
            "spend",
            "The sums over a run's calls on a day, for a purpose, with a model, with discarded"
            " attempts.",
            f"run_id day purpose called_model calls failed_calls unpriced_calls {_USAGE} cost_usd"
            " created_at",
            key="run_id day purpose called_model",
        ),
        StoredTable(
            "attempt_rows",
            "One request of a call, as the ledger recorded it, without texts.",
            "attempt_id run_id purpose called_model row_id attempt status http_status latency_s"
            " prompt_tokens cached_tokens completion_tokens reasoning_tokens cost_usd finished_at",
            key="attempt_id",
        ),
    )
}
DECIDED_STATUSES = ("ok", "met", "partial", "unmet")
