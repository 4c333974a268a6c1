"""Every stored column, declared once, with its type and its meaning in every table."""

from functools import partial
from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """The type and the meaning of a column."""

    type: pa.DataType
    meaning: str


_text = partial(Column, pa.string())
_whole_number = partial(Column, pa.int64())
_number = partial(Column, pa.float64())
_flag = partial(Column, pa.bool_())
_texts = partial(Column, pa.list_(pa.string()))
_numbers = partial(Column, pa.list_(pa.float64()))
_time = partial(Column, pa.timestamp("us", tz="UTC"))

COLUMNS: dict[str, Column] = {
    # what is evaluated
    "benchmark": _text("Name of the benchmark."),
    "dataset_revision": _text(
        "Revision of the data set: the hub's commit, or the content hash of a file."
    ),
    "split": _text("Split of the data set; the hard splits repeat tasks of the full ones."),
    "task_id": _text("The task's id in the data set."),
    "field": _text("Domain of the task, such as Finance or Legal."),
    "topic": _text("Topic within the field."),
    "expert": _text("Who asks: Expert or Non-Expert."),
    "turns": _whole_number("Number of user turns that the data set states."),
    "turn_pattern": _text(
        "Shape of the conversation: u user, a assistant, e empty user turn, - a gap."
    ),
    "decision_types": _texts("Labels: what kind of decision the task asks about."),
    "economic_pathways": _texts("Labels: what economic consequence the decision has."),
    "n_criteria": _whole_number("Number of criteria in the rubric."),
    "positive_weight": _number("Sum of the positive weights, P."),
    "negative_weight": _number("Sum of the negative weights, N (at most 0)."),
    "has_reference_texts": _flag("True if a turn has reference texts."),
    "n_rows": _whole_number(
        "Number of rows of the id in a split, or of its different contents if more; 1 is correct."
    ),
    "canary": _text(
        "Marker that keeps the row out of training data; never sent, never stored with a text."
    ),
    "criterion_id": _text("The criterion's id in the data set."),
    "position": _whole_number("Position in its sequence, from 0."),
    "title": _text("The criterion as the judge reads it."),
    "category": _text("Rubric category."),
    "weight": _number(
        "Points for meeting the criterion; negative for a mistake; NULL if it is not a number."
    ),
    "rubric": _text("Wording of the rubric: original, or the name of a variant."),
    "original_id": _text("The criterion that this one is a rewrite of."),
    "original_hash": _text("Hash of that criterion's content when it was rewritten."),
    "weight_text": _text("The data set's weight, as text, if it is not a number."),
    "severity": _text(
        "Weight class of a criterion; of a check its policy: quarantine, warn or fail."
    ),
    "content_hash": _text(
        "Hash of the content: of a criterion its title, of a task its messages, rubric and labels;"
        " with PRBench also its field, topic, expert and turns."
    ),
    "kind": _text(
        "Kind of label (category, ...), of comparison (leave_one_out, official), or of alert."
    ),
    "label": _text("A label that the benchmark declares, or that a task or criterion has."),
    "min_weight": _number("Lowest weight of the class."),
    "max_weight": _number("Highest weight of the class."),
    # scores as data
    "score_name": _text("Name of the score."),
    "numerator_negative": _number("Factor of N in the numerator, which also has the points."),
    "denominator_positive": _number("Factor of P in the denominator."),
    "denominator_negative": _number("Factor of N in the denominator."),
    "clips_mean": _flag(
        "True if a model's mean below 0 is shown as 0; a response's value is never clipped."
    ),
    "is_primary": _flag(
        "True for the benchmark's primary score, which ranks models and selects hard tasks."
    ),
    # conversations and responses
    "conversation_id": _text("Hash of the messages as sent."),
    "prompt": _text("The user's text in the turn, unchanged."),
    "reference_texts": _texts("Texts that the user attaches to the prompt."),
    "response": _text("The assistant's reply in the turn, unchanged; NULL in the last turn."),
    "role": _text("user or assistant."),
    "content": _text("Text of the turn, with reference texts before it."),
    "response_id": _text(
        "Hash of the cell: revision, task, conversation, model with parameters, trial, vintage."
    ),
    "model": _text("Label of the model that responded."),
    "model_config_hash": _text(
        "Hash of the model's name, endpoint and parameters; `imported` if made elsewhere."
    ),
    "served_model": _text("The model name that the provider reported."),
    "served_fingerprint": _text("The system fingerprint that the provider reported."),
    "input_usd_per_mtok": _number("Price of a million prompt tokens when the call was made."),
    "cached_usd_per_mtok": _number(
        "Price of a million prompt tokens served from the provider's cache."
    ),
    "output_usd_per_mtok": _number("Price of a million tokens of the reply."),
    "price_table": _text(
        "Source of the prices: LiteLLM's table with its version, or the configuration."
    ),
    "trial": _whole_number("Repetition of the sampling, from 1."),
    "vintage": _text("Label of the sampling: base, or a night's date."),
    "source": _text("Origin: sampled, judged, imported, or counted from the votes of a panel."),
    "import_batch": _text("Hash of the file that the row was imported from."),
    "may_hide_failures": _flag(
        "True if the verdict's tool stores failed judge calls as decisions; NULL if unknown."
    ),
    "is_retracted": _flag(
        "True if the import was retracted; its rows stay in the parts but are not published."
    ),
    "reason": _text("Reason that the user gave for removing the response."),
    "status": _text("Outcome: ok, met, partial, unmet or sent, or the kind of failure."),
    "text": _text("The response, without thinking at its start; NULL unless status is ok."),
    "chars_alnum": _whole_number("Letters and digits in the response (paper, figure 7)."),
    "finish_reason": _text("The reason that the provider reported for the end of the response."),
    "degraded": _flag("True if the response was sampled with the fallback parameters."),
    "prompt_tokens": _whole_number(
        "Prompt tokens of the deciding call, as reported; of a run, of all its calls."
    ),
    "cached_tokens": _whole_number(
        "Prompt tokens that came from the provider's cache, as reported."
    ),
    "completion_tokens": _whole_number(
        "Tokens of the reply with its reasoning; NULL if the reported parts do not add up."
    ),
    "reasoning_tokens": _whole_number("Tokens spent on reasoning, as reported."),
    "cost_usd": _number(
        "Cost in US dollars, with discarded attempts and searches for evidence; NULL if unknown."
    ),
    "latency_s": _number("Seconds from sending the last attempt to its reply."),
    "attempts": _whole_number(
        "Requests made for this row; for a verdict also those for its evidence."
    ),
    "error": _text("Cause of a failure, in one line."),
    "run_id": _text("The run that wrote the row."),
    "created_at": _time("Time at which the row was written (UTC)."),
    # attempts
    "attempt_id": _text("Hash of the call and of the attempt's number."),
    "row_id": _text(
        "Id of the row that the call was made for: for several criteria, the first verdict's."
    ),
    "http_status": _whole_number(
        "HTTP status of the error, such as 429; NULL without an error, or without a response."
    ),
    "finished_at": _time("Time at which the attempt ended (UTC)."),
    # verdicts
    "verdict_id": _text(
        "Hash of the response and its text, criterion, judge, template, grading and trial."
    ),
    "criterion_hash": _text("Hash of the criterion's content when it was judged."),
    "judge": _text("Label of the judge."),
    "judge_config_hash": _text(
        "Hash of the judge's name, endpoint and parameters; `imported` if made elsewhere."
    ),
    "template_hash": _text("Hash of the judge template; `imported` if made elsewhere."),
    "grading": _text(
        "binary or ternary; in scores also ternary_as_binary: partly met counts as not met."
    ),
    "judge_trial": _whole_number("Repetition of the judging, from 1."),
    "value": _number(
        "Verdict: 1, 0.5 or 0; review: 1 or 0; score: its value; NULL if not decided."
    ),
    "explanation": _text("The judge's or the reviewer's reason."),
    "probability": _number(
        "Of a verdict: a decision model's probability of met (ternary: the expected value). Of"
        " a sample: the design's probability of sampling the row, above 0."
    ),
    "confidence": _number("The judge's probability of its decision, 0 to 1."),
    "n_in_call": _whole_number(
        "Number of criteria in the same call; NULL if the judge decides each by itself."
    ),
    "position_in_call": _whole_number("Position of the criterion in its call, from 1."),
    "arrangement": _text(
        "Criteria in a call: alone, grouped (as configured), or shuffled (in another order)."
    ),
    "piece_hash": _text(
        "Hash of the piece of the rubric that is judged in one call; NULL without pieces."
    ),
    "members_usd": _number(
        "Cost of the verdicts that a panel's verdict counts, in USD; NULL for other judges, and if"
        " any is unknown. Each is counted in `cost_usd` of the member's verdict."
    ),
    "decided_by": _text("Of a cascade: label of the judge that decided; NULL for other judges."),
    "escalated_because": _texts(
        "Of a cascade: reason for calling the second judge; NULL if the first one decided."
    ),
    "round": _whole_number(
        "Search for evidence: 1 searches the response; from 2, evidence that is still too long."
    ),
    "chunk_number": _whole_number("Number of the chunk within the searched text, from 1."),
    "n_chunks": _whole_number("Number of chunks of the searched text."),
    "first_char": _whole_number("Start of the chunk in the searched text, in characters from 0."),
    "n_chars": _whole_number("Characters of the chunk."),
    "evidence": _texts(
        "The judge's quotes and notes from the chunk; empty if there are none, NULL after a"
        " failure."
    ),
    # cascades
    "evaluation_id": _text("Hash of an evaluation of cascades: its judges, splits and figures."),
    "cheap_judge": _text("Label of the judge that a cascade asks first."),
    "strong_judge": _text(
        "Label of the judge that decides escalated criteria; the cascade is compared with it."
    ),
    "evaluated_splits": _texts("Evaluated splits; empty for all."),
    "rule": _text("The rule in words; `cheap alone` escalates no criterion, `strong alone` all."),
    "is_on_front": _flag(
        "True if no other rule is cheaper and agrees more, on the tasks for choosing rules."
    ),
    "is_picked": _flag("True for the cheapest rule within the given bound."),
    "n_paired": _whole_number(
        "Number of criteria that the strong judge decided and on which the rule can be replayed."
    ),
    "escalated_share": _number("Share of the criteria that are escalated."),
    "strong_calls": _number("Calls of the strong judge for 1,000 verdicts."),
    "cheap_calls": _number("Calls of the cheap judge for 1,000 verdicts."),
    "thousand_usd": _number("Cost of 1,000 verdicts in US dollars; NULL if a price is unknown."),
    "ranking_tau": _number(
        "Kendall's tau-b of the rankings of models under the rule and under the strong judge."
    ),
    "score_change": _number("Largest change in a model's mean score, with its sign."),
    "changed_model": _text("The model whose mean score changes most."),
    "n_ranked_responses": _whole_number(
        "Responses with all criteria under the rule; the ranking uses these."
    ),
    # quality
    "suite": _text("Suite of checks, with the name of the stage before it."),
    "expectation": _text("The expectation, as the call that creates it in Great Expectations."),
    "check_name": _text("Name of the check, as in the configuration's `quality`."),
    "table_name": _text("The checked rows (a query in sql/checks.sql)."),
    "success": _flag("True if every row met the expectation."),
    "n_evaluated": _whole_number("Number of checked rows."),
    "n_failed": _whole_number("Number of failing rows."),
    "failing_keys": _texts("Keys of the failing rows."),
    "detail": _text("The finding, as a sentence."),
    # selections and intervals
    "selection_id": _text("Hash of the data and settings of a selection of hard tasks."),
    "rank": _whole_number("Rank, from 1."),
    "mean_score": _number(
        "Mean score; of a model over its tasks, of a selected task over the panel's models."
    ),
    "n_models": _whole_number("Models in the panel."),
    "panel": _texts("Labels of the panel's models."),
    "majority": _text("Name of the grader that is the majority of several judges."),
    "selected_at": _time("Time of the selection (UTC)."),
    "is_selected": _flag("True if the task is in the selection."),
    "inclusion_probability": _number(
        "Share of resampled panels (models, and their trials) that select the task."
    ),
    "is_border": _flag(
        "True if the choice of the panel decides on the task: inclusion between 5 and 95 %."
    ),
    "compared_with": _text(
        "The other side: a left-out model, the hard split, released labels, or an annotator."
    ),
    "n_selected": _whole_number("Tasks of the selection."),
    "n_compared": _whole_number("Tasks of the other selection that this one could have selected."),
    "n_shared": _whole_number("Tasks in both."),
    "jaccard": _number(
        "Number in both / number in either: tasks of two selections, or labels of two sources."
    ),
    "figure_id": _text(
        "Hash of a figure's keys, such as task set, label, judge configuration, model and score."
    ),
    "basis": _text(
        "Fingerprint of the values that an interval was computed from; changes with any of them."
    ),
    "method": _text("Method of the interval or limit, with a version (tasks/rules/README.md)."),
    "measure": _text(
        "Name of the measure, such as score, kappa or effective_votes (tasks/measures)."
    ),
    "n": _whole_number("Number of cases of a measure, if the figure does not state it."),
    "note": _text("A caveat on the measure, or the reason why it has no value."),
    "ci_low": _number("Lower end of the 95 % bootstrap interval over tasks."),
    "ci_high": _number("Upper end of the 95 % bootstrap interval over tasks."),
    "is_small": _flag(
        "True if the figure has too few tasks, or too few that differ, for its interval."
    ),
    # annotations
    "analyst": _text("Label of a model that labels tasks or checks criteria."),
    "analyst_config_hash": _text("Hash of that model's name, endpoint and parameters."),
    "annotation_id": _text(
        "Hash of the task's conversation, kind of label, annotator, prompt and trial."
    ),
    "annotator": _text("Label of the model that labels tasks."),
    "annotator_config_hash": _text("Hash of the annotator's name, endpoint and parameters."),
    "primary_label": _text("The label that fits best; NULL after a failure."),
    "secondary_labels": _texts("Further labels that clearly fit; NULL after a failure."),
    "n_tasks": _whole_number("Number of tasks used."),
    # capabilities
    "capability_id": _text(
        "Hash of the criterion, its task's conversation, the called model and its prompt."
    ),
    "phrase": _text(
        "The capability that a criterion needs, as a short phrase; NULL after a failure."
    ),
    "embedding_id": _text("Hash of the phrase and of the embedding model."),
    "vector": _numbers("The embedding of the phrase; NULL after a failure."),
    "name_id": _text(
        "Hash of a node's criteria and phrases, the taken names, and the called model."
    ),
    "tree_id": _text("Hash of a field's criteria, their phrases, and the method of the tree."),
    "node_id": _text("Hash of the criteria in a node; the same in every tree."),
    "parent_id": _text("The parent node; NULL for the root, which is the whole field."),
    "level": _whole_number("Level below the root."),
    "name": _text("Name of the node's capability; NULL if no name could be written."),
    "attempt": _whole_number(
        "Number of the same request, from 1; for a node's name, later ones list the taken names."
    ),
    "vectors": _text("Source of the phrases' vectors: tfidf, or the label of the embedding model."),
    "is_leaf": _flag("True if the node has no children."),
    "analysis_id": _text(
        "Fingerprint of all inputs of scores in capabilities; changes with any of them."
    ),
    "compared_model": _text(
        "The other model; NULL if a model is compared with its own other criteria."
    ),
    "compared_vintage": _text("Vintage of the other model's responses."),
    "compared_config_hash": _text("Hash of the other model's name, endpoint and parameters."),
    "compared_key": _text("Hash of the other side of the comparison."),
    "compared_value": _number(
        "Value of the other side on the same tasks, in the unit of the score."
    ),
    "gap": _number(
        "Mean over tasks of the model's value minus the other side's; below 0 if it is weak."
    ),
    "found_gap": _number(
        "The gap on the tasks for selection; exaggerated, because large gaps are selected."
    ),
    "n_tasks_found": _whole_number("Number of tasks for selection that the node is compared on."),
    "p_found": _number(
        "One-sided p-value on the tasks for selection, corrected for the nodes of the tree (Holm)."
    ),
    "p_confirmed": _number(
        "One-sided p-value on the other tasks, corrected for all candidates of the model (Holm)."
    ),
    "is_confirmed": _flag(
        "True if the other tasks confirm the candidate, at 5 %; only then is it a weakness."
    ),
    # agreement
    "members": _texts("Names of the voting graders."),
    "kappa": _number("Cohen's kappa, unweighted; NULL if agreement by chance is 1."),
    "macro_f1": _number(
        "Mean F1 over the decisions (met, unmet, partial) that either grader made."
    ),
    "agreement": _number("Share of criteria with the same decision of both."),
    # conditions of a model
    "shared_model": _text("Configured name of a model, the same under all its conditions."),
    "condition_names": _texts(
        "Names of the conditions, the baseline first; empty if no longer configured."
    ),
    "condition_models": _texts("Labels of the model under these conditions, in the same order."),
    "p_value": _number("Uncorrected p-value of a paired difference; NULL if too few tasks differ."),
    # reviews of rubrics
    "sample_id": _text("Hash of a sample of criteria: its design and its population."),
    "population_id": _text("Hash of the criteria in a sample's population."),
    "n_population": _whole_number("Size of a sample's population, in criteria or verdicts."),
    "design": _text("Design of a sample, in words."),
    "stratum": _text(
        "Stratum of the population that the criterion is from; all if there is only one. Of a"
        " succession: the sign of the weight, and the category."
    ),
    # labels of verdicts
    "sheet_id": _text("Hash of a sheet of verdicts: its population and design."),
    "covered_breakdown": _text("Sampled verdicts on these responses: all, or those of a category."),
    "covered_label": _text("The category; empty for all."),
    "covered_responses": _texts(
        "The responses whose verdicts are the sheet's population, sampled or not."
    ),
    "n_drawn": _whole_number("Number of verdicts in a sheet, or of criteria in a sample."),
    "seed": _whole_number(
        "Seed of the random numbers; NULL if the user states that labels are a random sample."
    ),
    "is_known": _flag(
        "True if the verdict already had a label before the sheet; it is used with probability 1."
    ),
    # successions
    "succession_id": _text("Hash of a succession: its judges and its sample of criteria."),
    "new_judge": _text("Label of the judge that is compared with the old one."),
    "new_judge_config_hash": _text("Hash of the new judge's name, endpoint and parameters."),
    "new_template_hash": _text("Hash of the new judge's template."),
    "sampled_tasks": _texts("Tasks from whose criteria a sample was drawn."),
    "sampled_runs": _texts(
        "Sampled models, each as vintage, configuration hash and model, joined by spaces."
    ),
    "look": _whole_number(
        "Number of times that the sample was looked at to end it, from 1; NULL if its size was"
        " given."
    ),
    "review_id": _text("Hash of the criterion, its content and its reviewer."),
    "reviewer": _text("The reviewer: a person's name, or the label of a model."),
    "better_wording": _text("The reviewer's better wording of the criterion."),
    "reviewer_config_hash": _text("Hash of the reviewing model's name, endpoint and parameters."),
    "review_trial": _whole_number("Repetition of the review, from 1."),
    "findings": _text(
        "A model's finding on each check of a criterion: a JSON list of name, passes and reason."
    ),
    # stopping
    "wanted_trials": _whole_number("Number of trials that the configuration wants of the model."),
    "min_coverage": _number("The coverage that a vintage needs to be current (`coverage.min`)."),
    "stopping_id": _text(
        "Hash of all inputs of comparisons: models, judge, score, tasks, order, settings."
    ),
    "block": _whole_number("Number of the last block of tasks before the look, from 1."),
    "n_tasks_evaluated": _whole_number(
        "Tasks of the evaluated random part, with or without a value."
    ),
    "n_tasks_planned": _whole_number("Largest number of tasks that could be evaluated."),
    "n_tasks_skipped": _whole_number(
        "Tasks not evaluated, because all comparisons of the model were settled."
    ),
    "is_second_minus_first": _flag(
        "True: a difference is second minus first. Parts of 0.2.0 lack this flag and have the"
        " opposite sign for two models; they are converted when they are read."
    ),
    "mean_difference": _number(
        "Mean over tasks of the compared model's score minus the model's, or of a night's score"
        " minus that of earlier nights; too large after an early end."
    ),
    "unbiased_difference": _number(
        "The same without the bias of stopping; NULL if not computable, or if open."
    ),
    "unbiased_mean_score": _number(
        "Mean score, unclipped, without the bias of stopping; NULL if not computable."
    ),
    "sequence_low": _number(
        "Lower end of an interval that is valid for all looks together, unclipped."
    ),
    "sequence_high": _number(
        "Upper end of an interval that is valid for all looks together, unclipped."
    ),
    "comparison_alpha": _number(
        "Probability of a false decision on this comparison, over all looks."
    ),
    "least_difference": _number(
        "Smaller differences count as equal, smaller drops as none; in the unit of the score."
    ),
    "decision": _text("different, equal, dropped, not_dropped, or open."),
    # the control set
    "set_id": _text("Hash of a control set: its judge configuration and its verdicts."),
    "first_value": _number("Value of the first verdict, stored in the control set: 1, 0.5 or 0."),
    "n_decided": _whole_number("Number of decided criteria."),
    "n_agreeing": _whole_number("Decided criteria with the same decision as in the control set."),
    "judge_vintage": _text("Label of the night in which the control set was judged."),
    "min_agreement": _number("The configured minimum of agreement that night; NULL without one."),
    "centre": _number("Agreement expected from the earlier nights in control; NULL without any."),
    "lower_limit": _number(
        "Lowest agreement that is in control after those nights; NULL without any."
    ),
    "joint_limit": _number(
        "Lowest agreement with which this night and those before it are in control together; NULL"
        " without any."
    ),
    "cause": _text(
        "The bounds that agreement is below: limit, joint limit, bar, or several with `and`; NULL"
        " in control."
    ),
    # alerts
    "alert_id": _text("Hash of the run and the alert's content."),
    "subject": _text("Label of the alert's model or judge; empty for the night itself."),
    "facts": _text("The figures of an alert as a JSON object."),
    "receiver": _text(
        "The receiver: kind and number in the configuration (slack 2), or ping; no address."
    ),
    "alert_ids": _texts("Alerts in the message, by their ids; NULL if an older version sent it."),
    "n_alerts": _whole_number("Alerts in the message; 0 for a ping."),
    # runs
    "command": _text("The command."),
    "config": _text(
        "The configuration as JSON, with the command's selection (`selection`); no secrets."
    ),
    "git_commit": _text("Commit of the pipeline's checkout, if it is one."),
    "started_at": _time("Start of the run (UTC)."),
    "ended_at": _time("End of the run (UTC); NULL while it is in progress, or if it was killed."),
    "outcome": _text(
        "running, done, below_bar, failed, interrupted, stopped_at_budget, stopped_at_time or"
        " killed."
    ),
    "night": _text("Label of the night, which is also a vintage; NULL for other runs."),
    "responses_made": _whole_number("Responses that this run sampled."),
    "verdicts_made": _whole_number("Verdicts that this run judged."),
    "calls": _whole_number("Requests that the run sent, with discarded attempts."),
    "day": _text("Day on which calls ended (UTC), as an ISO date."),
    "purpose": _text(
        "Purpose of the calls, such as sample, judge, drift or review; unknown if not recorded."
    ),
    "called_model": _text("LiteLLM's name of the called model."),
    "failed_calls": _whole_number(
        "Calls without a usable text: refused, truncated, failed or rejected."
    ),
    "unpriced_calls": _whole_number("Calls of unknown cost; the cost leaves them out."),
    "cached_share": _number(
        "Share of the prompt tokens served from the provider's cache; NULL if none was reported."
    ),
}
for _name in (
    "escalated_share",
    "thousand_usd",
    "ranking_tau",
    "score_change",
    "gap",
    "kappa",
    "macro_f1",
    "agreement",
):
    _meaning = f"end of the 95 % interval of `{_name}` over tasks; NULL if too few differ."
    COLUMNS[f"{_name}_ci_low"] = _number(f"Lower {_meaning}")
    COLUMNS[f"{_name}_ci_high"] = _number(f"Upper {_meaning}")
