"""Every stored column, declared once, with its type and meaning; a name has the same meaning in
every table.
"""

import pyarrow as pa

_TEXT = pa.string()
_INT = pa.int64()
_REAL = pa.float64()
_FLAG = pa.bool_()
_TEXTS = pa.list_(pa.string())
_REALS = pa.list_(pa.float64())
_TIME = pa.timestamp("us", tz="UTC")

COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    # what is evaluated
    "benchmark": (_TEXT, "Name of the benchmark."),
    "dataset_revision": (
        _TEXT,
        "Revision of the data set: the hub's commit, or the content hash of a file.",
    ),
    "split": (_TEXT, "Split of the data set; the hard splits repeat tasks of the full ones."),
    "task_id": (_TEXT, "The task's id in the data set."),
    "field": (_TEXT, "Domain of the task, such as Finance or Legal."),
    "topic": (_TEXT, "Topic within the field."),
    "expert": (_TEXT, "Who asks: Expert or Non-Expert."),
    "turns": (_INT, "Number of user turns that the data set states."),
    "turn_pattern": (
        _TEXT,
        "Shape of the conversation: u user, a assistant, e empty user turn, - a gap.",
    ),
    "decision_types": (_TEXTS, "Labels: what kind of decision the task asks about."),
    "economic_pathways": (_TEXTS, "Labels: what economic consequence the decision has."),
    "n_criteria": (_INT, "Number of criteria in the rubric."),
    "positive_weight": (_REAL, "Sum of the positive weights, P."),
    "negative_weight": (_REAL, "Sum of the negative weights, N (at most 0)."),
    "has_reference_texts": (_FLAG, "True if a turn has reference texts."),
    "n_rows": (
        _INT,
        "Number of rows of the id in a split, or of its different contents if more; 1 is correct.",
    ),
    "canary": (
        _TEXT,
        "Marker that keeps the row out of training data; never sent, never stored with a text.",
    ),
    "criterion_id": (_TEXT, "The criterion's id in the data set."),
    "position": (_INT, "Position in its sequence, from 0."),
    "title": (_TEXT, "The criterion as the judge reads it."),
    "category": (_TEXT, "Rubric category."),
    "weight": (
        _REAL,
        "Points for meeting the criterion; negative for a mistake; NULL if it is not a number.",
    ),
    "rubric": (_TEXT, "Wording of the rubric: original, or the name of a variant."),
    "original_id": (_TEXT, "The criterion that this one is a rewrite of."),
    "original_hash": (_TEXT, "Hash of that criterion's content when it was rewritten."),
    "weight_text": (_TEXT, "The data set's weight, as text, if it is not a number."),
    "severity": (
        _TEXT,
        "Weight class of a criterion; of a check its policy: quarantine, warn or fail.",
    ),
    "content_hash": (
        _TEXT,
        "Hash of the content: of a task everything except its canary, of a criterion its title.",
    ),
    "kind": (
        _TEXT,
        "Kind of label (category, ...), of comparison (leave_one_out, official), or of alert.",
    ),
    "label": (_TEXT, "A label that the benchmark declares, or that a task or criterion has."),
    "min_weight": (_REAL, "Lowest weight of the class."),
    "max_weight": (_REAL, "Highest weight of the class."),
    # scores as data
    "score_name": (_TEXT, "Name of the score."),
    "numerator_negative": (_REAL, "Factor of N in the numerator, which also has the points."),
    "denominator_positive": (_REAL, "Factor of P in the denominator."),
    "denominator_negative": (_REAL, "Factor of N in the denominator."),
    "clips_mean": (
        _FLAG,
        "True if a model's mean below 0 is shown as 0; a response's value is never clipped.",
    ),
    "is_primary": (
        _FLAG,
        "True for the benchmark's primary score, which ranks models and selects hard tasks.",
    ),
    # conversations and responses
    "conversation_id": (_TEXT, "Hash of the messages as sent."),
    "prompt": (_TEXT, "The user's text in the turn, unchanged."),
    "reference_texts": (_TEXTS, "Texts that the user attaches to the prompt."),
    "response": (_TEXT, "The assistant's reply in the turn, unchanged; NULL in the last turn."),
    "role": (_TEXT, "user or assistant."),
    "content": (_TEXT, "Text of the turn, with reference texts before it."),
    "response_id": (
        _TEXT,
        "Hash of the cell: revision, task, conversation, model with parameters, trial, vintage.",
    ),
    "model": (_TEXT, "Label of the model that responded."),
    "model_config_hash": (
        _TEXT,
        "Hash of the model's name, endpoint and parameters; `imported` if made elsewhere.",
    ),
    "served_model": (_TEXT, "The model name that the provider reported."),
    "served_fingerprint": (_TEXT, "The system fingerprint that the provider reported."),
    "input_usd_per_mtok": (_REAL, "Price of a million prompt tokens when the call was made."),
    "cached_usd_per_mtok": (
        _REAL,
        "Price of a million prompt tokens served from the provider's cache.",
    ),
    "output_usd_per_mtok": (_REAL, "Price of a million tokens of the reply."),
    "price_table": (
        _TEXT,
        "Source of the prices: LiteLLM's table with its version, or the configuration.",
    ),
    "trial": (_INT, "Repetition of the sampling, from 1."),
    "vintage": (_TEXT, "Label of the sampling: base, or a night's date."),
    "source": (_TEXT, "Origin: sampled, judged or imported."),
    "import_batch": (_TEXT, "Hash of the file that the row was imported from."),
    "may_hide_failures": (
        _FLAG,
        "True if the verdict's tool stores failed judge calls as decisions; NULL if unknown.",
    ),
    "is_retracted": (
        _FLAG,
        "True if the import was retracted; its rows stay in the parts but are not published.",
    ),
    "reason": (_TEXT, "Reason that the user gave for removing the response."),
    "status": (_TEXT, "Outcome: ok, met, partial, unmet or sent, or the kind of failure."),
    "text": (_TEXT, "The response, without thinking at its start; NULL unless status is ok."),
    "chars_alnum": (_INT, "Letters and digits in the response (paper, figure 7)."),
    "finish_reason": (_TEXT, "The reason that the provider reported for the end of the response."),
    "degraded": (_FLAG, "True if the response was sampled with the fallback parameters."),
    "prompt_tokens": (
        _INT,
        "Prompt tokens of the deciding call, as reported; of a run, of all its calls.",
    ),
    "cached_tokens": (_INT, "Prompt tokens that came from the provider's cache, as reported."),
    "completion_tokens": (
        _INT,
        "Tokens of the reply with its reasoning; NULL if the reported parts do not add up.",
    ),
    "reasoning_tokens": (_INT, "Tokens spent on reasoning, as reported."),
    "cost_usd": (
        _REAL,
        "Cost in US dollars, with discarded attempts and searches for evidence; NULL if unknown.",
    ),
    "latency_s": (_REAL, "Seconds from sending the last attempt to its reply."),
    "attempts": (_INT, "Requests made for this row; for a verdict also those for its evidence."),
    "error": (_TEXT, "Cause of a failure, in one line."),
    "run_id": (_TEXT, "The run that wrote the row."),
    "created_at": (_TIME, "Time at which the row was written (UTC)."),
    # attempts
    "attempt_id": (_TEXT, "Hash of the call and of the attempt's number."),
    "row_id": (
        _TEXT,
        "Id of the row that the call was made for: for several criteria, the first verdict's.",
    ),
    "http_status": (
        _INT,
        "HTTP status of the error, such as 429; NULL without an error, or without a response.",
    ),
    "finished_at": (_TIME, "Time at which the attempt ended (UTC)."),
    # verdicts
    "verdict_id": (
        _TEXT,
        "Hash of the response and its text, criterion, judge, template, grading and trial.",
    ),
    "criterion_hash": (_TEXT, "Hash of the criterion's content when it was judged."),
    "judge": (_TEXT, "Label of the judge."),
    "judge_config_hash": (
        _TEXT,
        "Hash of the judge's name, endpoint and parameters; `imported` if made elsewhere.",
    ),
    "template_hash": (_TEXT, "Hash of the judge template; `imported` if made elsewhere."),
    "grading": (
        _TEXT,
        "binary or ternary; in scores also ternary_as_binary: partly met counts as not met.",
    ),
    "judge_trial": (_INT, "Repetition of the judging, from 1."),
    "value": (
        _REAL,
        "Verdict: 1, 0.5 or 0; review: 1 or 0; score: its value; NULL if not decided.",
    ),
    "explanation": (_TEXT, "The judge's or the reviewer's reason."),
    "probability": (
        _REAL,
        (
            "Of a verdict: a decision model's probability of met (ternary: the expected value). Of"
            " a sample: the design's probability of sampling the row, above 0."
        ),
    ),
    "confidence": (_REAL, "The judge's probability of its decision, 0 to 1."),
    "n_in_call": (
        _INT,
        "Number of criteria in the same call; NULL if the judge decides each by itself.",
    ),
    "position_in_call": (_INT, "Position of the criterion in its call, from 1."),
    "arrangement": (
        _TEXT,
        "Criteria in a call: alone, grouped (as configured), or shuffled (in another order).",
    ),
    "piece_hash": (
        _TEXT,
        "Hash of the piece of the rubric that is judged in one call; NULL without pieces.",
    ),
    "decided_by": (_TEXT, "Of a cascade: label of the judge that decided; NULL for other judges."),
    "escalated_because": (
        _TEXTS,
        "Of a cascade: reason for calling the second judge; NULL if the first one decided.",
    ),
    "round": (
        _INT,
        "Search for evidence: 1 searches the response; from 2, evidence that is still too long.",
    ),
    "chunk_number": (_INT, "Number of the chunk within the searched text, from 1."),
    "n_chunks": (_INT, "Number of chunks of the searched text."),
    "first_char": (_INT, "Start of the chunk in the searched text, in characters from 0."),
    "n_chars": (_INT, "Characters of the chunk."),
    "evidence": (
        _TEXTS,
        (
            "The judge's quotes and notes from the chunk; empty if there are none, NULL after a"
            " failure."
        ),
    ),
    # cascades
    "evaluation_id": (_TEXT, "Hash of an evaluation of cascades: its judges, splits and figures."),
    "cheap_judge": (_TEXT, "Label of the judge that a cascade asks first."),
    "strong_judge": (
        _TEXT,
        "Label of the judge that decides escalated criteria; the cascade is compared with it.",
    ),
    "evaluated_splits": (_TEXTS, "Evaluated splits; empty for all."),
    "rule": (_TEXT, "The rule in words; `cheap alone` escalates no criterion, `strong alone` all."),
    "is_on_front": (
        _FLAG,
        "True if no other rule is cheaper and agrees more, on the tasks for choosing rules.",
    ),
    "is_picked": (_FLAG, "True for the cheapest rule within the given bound."),
    "n_paired": (
        _INT,
        "Number of criteria that the strong judge decided and on which the rule can be replayed.",
    ),
    "escalated_share": (_REAL, "Share of the criteria that are escalated."),
    "strong_calls": (_REAL, "Calls of the strong judge for 1,000 verdicts."),
    "cheap_calls": (_REAL, "Calls of the cheap judge for 1,000 verdicts."),
    "thousand_usd": (_REAL, "Cost of 1,000 verdicts in US dollars; NULL if a price is unknown."),
    "ranking_tau": (
        _REAL,
        "Kendall's tau-b of the rankings of models under the rule and under the strong judge.",
    ),
    "score_change": (_REAL, "Largest change in a model's mean score, with its sign."),
    "changed_model": (_TEXT, "The model whose mean score changes most."),
    "n_ranked_responses": (
        _INT,
        "Responses with all criteria under the rule; the ranking uses these.",
    ),
    # quality
    "suite": (_TEXT, "Suite of checks, with the name of the stage before it."),
    "expectation": (_TEXT, "The expectation, as the call that creates it in Great Expectations."),
    "check_name": (_TEXT, "Name of the check, as in the configuration's `quality`."),
    "table_name": (_TEXT, "The checked rows (a query in sql/checks.sql)."),
    "success": (_FLAG, "True if every row met the expectation."),
    "n_evaluated": (_INT, "Number of checked rows."),
    "n_failed": (_INT, "Number of failing rows."),
    "failing_keys": (_TEXTS, "Keys of the failing rows."),
    "detail": (_TEXT, "The finding, as a sentence."),
    # selections and intervals
    "selection_id": (_TEXT, "Hash of the data and settings of a selection of hard tasks."),
    "rank": (_INT, "Rank, from 1."),
    "mean_score": (
        _REAL,
        "Mean score; of a model over its tasks, of a selected task over the panel's models.",
    ),
    "n_models": (_INT, "Models in the panel."),
    "panel": (_TEXTS, "Labels of the panel's models."),
    "majority": (_TEXT, "Name of the grader that is the majority of several judges."),
    "selected_at": (_TIME, "Time of the selection (UTC)."),
    "is_selected": (_FLAG, "True if the task is in the selection."),
    "inclusion_probability": (
        _REAL,
        "Share of resampled panels (models, and their trials) that select the task.",
    ),
    "is_border": (
        _FLAG,
        "True if the choice of the panel decides on the task: inclusion between 5 and 95 %.",
    ),
    "compared_with": (
        _TEXT,
        "The other side: a left-out model, the hard split, released labels, or an annotator.",
    ),
    "n_selected": (_INT, "Tasks of the selection."),
    "n_compared": (_INT, "Tasks of the other selection that this one could have selected."),
    "n_shared": (_INT, "Tasks in both."),
    "jaccard": (
        _REAL,
        "Number in both / number in either: tasks of two selections, or labels of two sources.",
    ),
    "figure_id": (
        _TEXT,
        "Hash of a figure's keys, such as task set, label, judge configuration, model and score.",
    ),
    "basis": (
        _TEXT,
        "Fingerprint of the values that an interval was computed from; changes with any of them.",
    ),
    "method": (_TEXT, "Method of the interval or limit, with a version (tasks/rules/README.md)."),
    "measure": (
        _TEXT,
        "Name of the measure, such as score, kappa or effective_votes (tasks/measures).",
    ),
    "n": (_INT, "Number of cases of a measure, if the figure does not state it."),
    "note": (_TEXT, "A caveat on the measure, or the reason why it has no value."),
    "ci_low": (_REAL, "Lower end of the 95 % bootstrap interval over tasks."),
    "ci_high": (_REAL, "Upper end of the 95 % bootstrap interval over tasks."),
    "is_small": (
        _FLAG,
        "True if the figure has too few tasks, or too few that differ, for its interval.",
    ),
    # annotations
    "analyst": (_TEXT, "Label of a model that labels tasks or checks criteria."),
    "analyst_config_hash": (_TEXT, "Hash of that model's name, endpoint and parameters."),
    "annotation_id": (
        _TEXT,
        "Hash of the task's conversation, kind of label, annotator, prompt and trial.",
    ),
    "annotator": (_TEXT, "Label of the model that labels tasks."),
    "annotator_config_hash": (_TEXT, "Hash of the annotator's name, endpoint and parameters."),
    "primary_label": (_TEXT, "The label that fits best; NULL after a failure."),
    "secondary_labels": (_TEXTS, "Further labels that clearly fit; NULL after a failure."),
    "n_tasks": (_INT, "Number of tasks used."),
    # capabilities
    "capability_id": (
        _TEXT,
        "Hash of the criterion, its task's conversation, the called model and its prompt.",
    ),
    "phrase": (
        _TEXT,
        "The capability that a criterion needs, as a short phrase; NULL after a failure.",
    ),
    "embedding_id": (_TEXT, "Hash of the phrase and of the embedding model."),
    "vector": (_REALS, "The embedding of the phrase; NULL after a failure."),
    "name_id": (
        _TEXT,
        "Hash of a node's criteria and phrases, the taken names, and the called model.",
    ),
    "tree_id": (_TEXT, "Hash of a field's criteria, their phrases, and the method of the tree."),
    "node_id": (_TEXT, "Hash of the criteria in a node; the same in every tree."),
    "parent_id": (_TEXT, "The parent node; NULL for the root, which is the whole field."),
    "level": (_INT, "Level below the root."),
    "name": (_TEXT, "Name of the node's capability; NULL if no name could be written."),
    "attempt": (
        _INT,
        "Number of the same request, from 1; for a node's name, later ones list the taken names.",
    ),
    "vectors": (
        _TEXT,
        "Source of the phrases' vectors: tfidf, or the label of the embedding model.",
    ),
    "is_leaf": (_FLAG, "True if the node has no children."),
    "analysis_id": (
        _TEXT,
        "Fingerprint of all inputs of scores in capabilities; changes with any of them.",
    ),
    "compared_model": (
        _TEXT,
        "The other model; NULL if a model is compared with its own other criteria.",
    ),
    "compared_vintage": (_TEXT, "Vintage of the other model's responses."),
    "compared_config_hash": (_TEXT, "Hash of the other model's name, endpoint and parameters."),
    "compared_key": (_TEXT, "Hash of the other side of the comparison."),
    "compared_value": (
        _REAL,
        "Value of the other side on the same tasks, in the unit of the score.",
    ),
    "gap": (
        _REAL,
        "Mean over tasks of the model's value minus the other side's; below 0 if it is weak.",
    ),
    "found_gap": (
        _REAL,
        "The gap on the tasks for selection; exaggerated, because large gaps are selected.",
    ),
    "n_tasks_found": (_INT, "Number of tasks for selection that the node is compared on."),
    "p_found": (
        _REAL,
        "One-sided p-value on the tasks for selection, corrected for the nodes of the tree (Holm).",
    ),
    "p_confirmed": (
        _REAL,
        "One-sided p-value on the other tasks, corrected for all candidates of the model (Holm).",
    ),
    "is_confirmed": (
        _FLAG,
        "True if the other tasks confirm the candidate, at 5 %; only then is it a weakness.",
    ),
    # agreement
    "members": (_TEXTS, "Names of the voting graders."),
    "kappa": (_REAL, "Cohen's kappa, unweighted; NULL if agreement by chance is 1."),
    "macro_f1": (
        _REAL,
        "Mean F1 over the decisions (met, unmet, partial) that either grader made.",
    ),
    "agreement": (_REAL, "Share of criteria with the same decision of both."),
    # conditions of a model
    "shared_model": (_TEXT, "Configured name of a model, the same under all its conditions."),
    "condition_names": (
        _TEXTS,
        "Names of the conditions, the baseline first; empty if no longer configured.",
    ),
    "condition_models": (_TEXTS, "Labels of the model under these conditions, in the same order."),
    "p_value": (_REAL, "Uncorrected p-value of a paired difference; NULL if too few tasks differ."),
    # reviews of rubrics
    "sample_id": (_TEXT, "Hash of a sample of criteria: its design and its population."),
    "population_id": (_TEXT, "Hash of the criteria in a sample's population."),
    "n_population": (_INT, "Size of a sample's population, in criteria or verdicts."),
    "design": (_TEXT, "Design of a sample, in words."),
    "stratum": (
        _TEXT,
        "Stratum of the population that the criterion is from; all if there is only one.",
    ),
    # labels of verdicts
    "sheet_id": (_TEXT, "Hash of a sheet of verdicts: its population and design."),
    "covered_breakdown": (
        _TEXT,
        "Sampled verdicts on these responses: all, or those of a category.",
    ),
    "covered_label": (_TEXT, "The category; empty for all."),
    "covered_responses": (
        _TEXTS,
        "The responses whose verdicts are the sheet's population, sampled or not.",
    ),
    "n_drawn": (_INT, "Number of verdicts in the sheet."),
    "seed": (
        _INT,
        "Seed of the random numbers; NULL if the user states that labels are a random sample.",
    ),
    "is_known": (
        _FLAG,
        "True if the verdict already had a label before the sheet; it is used with probability 1.",
    ),
    "review_id": (_TEXT, "Hash of the criterion, its content and its reviewer."),
    "reviewer": (_TEXT, "The reviewer: a person's name, or the label of a model."),
    "better_wording": (_TEXT, "The reviewer's better wording of the criterion."),
    "reviewer_config_hash": (_TEXT, "Hash of the reviewing model's name, endpoint and parameters."),
    "review_trial": (_INT, "Repetition of the review, from 1."),
    "findings": (
        _TEXT,
        "A model's finding on each check of a criterion: a JSON list of name, passes and reason.",
    ),
    # stopping
    "wanted_trials": (_INT, "Number of trials that the configuration wants of the model."),
    "min_coverage": (_REAL, "The coverage that a vintage needs to be current (`coverage.min`)."),
    "stopping_id": (
        _TEXT,
        "Hash of all inputs of comparisons: models, judge, score, tasks, order, settings.",
    ),
    "block": (_INT, "Number of the last block of tasks before the look, from 1."),
    "n_tasks_evaluated": (_INT, "Tasks of the evaluated random part, with or without a value."),
    "n_tasks_planned": (_INT, "Largest number of tasks that could be evaluated."),
    "n_tasks_skipped": (
        _INT,
        "Tasks not evaluated, because all comparisons of the model were settled.",
    ),
    "is_second_minus_first": (
        _FLAG,
        "True: a difference is second minus first. Parts of 0.2.0 lack this flag and have the"
        " opposite sign for two models; they are converted when they are read.",
    ),
    "mean_difference": (
        _REAL,
        "Mean over tasks of the compared model's score minus the model's, or of a night's score"
        " minus that of earlier nights; too large after an early end.",
    ),
    "unbiased_difference": (
        _REAL,
        "The same without the bias of stopping; NULL if not computable, or if open.",
    ),
    "unbiased_mean_score": (
        _REAL,
        "Mean score, unclipped, without the bias of stopping; NULL if not computable.",
    ),
    "sequence_low": (
        _REAL,
        "Lower end of an interval that is valid for all looks together, unclipped.",
    ),
    "sequence_high": (
        _REAL,
        "Upper end of an interval that is valid for all looks together, unclipped.",
    ),
    "comparison_alpha": (
        _REAL,
        "Probability of a false decision on this comparison, over all looks.",
    ),
    "least_difference": (
        _REAL,
        "Smaller differences count as equal, smaller drops as none; in the unit of the score.",
    ),
    "decision": (_TEXT, "different, equal, dropped, not_dropped, or open."),
    # the control set
    "set_id": (_TEXT, "Hash of a control set: its judge configuration and its verdicts."),
    "first_value": (_REAL, "Value of the first verdict, stored in the control set: 1, 0.5 or 0."),
    "n_decided": (_INT, "Number of decided criteria."),
    "n_agreeing": (_INT, "Decided criteria with the same decision as in the control set."),
    "judge_vintage": (_TEXT, "Label of the night in which the control set was judged."),
    "min_agreement": (_REAL, "The configured minimum of agreement that night; NULL without one."),
    "centre": (_REAL, "Agreement expected from the earlier nights in control; NULL without any."),
    "lower_limit": (
        _REAL,
        "Lowest agreement that is in control after those nights; NULL without any.",
    ),
    "cause": (
        _TEXT,
        "The bounds that agreement is below: limit, bar, or limit and bar; NULL in control.",
    ),
    # alerts
    "alert_id": (_TEXT, "Hash of the run and the alert's content."),
    "subject": (_TEXT, "Label of the alert's model or judge; empty for the night itself."),
    "facts": (_TEXT, "The figures of an alert as a JSON object."),
    "receiver": (
        _TEXT,
        "The receiver: kind and number in the configuration (slack 2), or ping; no address.",
    ),
    "alert_ids": (_TEXTS, "Alerts in the message, by their ids; NULL if an older version sent it."),
    "n_alerts": (_INT, "Alerts in the message; 0 for a ping."),
    # runs
    "command": (_TEXT, "The command."),
    "config": (
        _TEXT,
        "The configuration as JSON, with the command's selection (`selection`); no secrets.",
    ),
    "git_commit": (_TEXT, "Commit of the pipeline's checkout, if it is one."),
    "started_at": (_TIME, "Start of the run (UTC)."),
    "ended_at": (_TIME, "End of the run (UTC); NULL while it is in progress, or if it was killed."),
    "outcome": (
        _TEXT,
        (
            "running, done, below_bar, failed, interrupted, stopped_at_budget, stopped_at_time or"
            " killed."
        ),
    ),
    "night": (_TEXT, "Label of the night, which is also a vintage; NULL for other runs."),
    "responses_made": (_INT, "Responses that this run sampled."),
    "verdicts_made": (_INT, "Verdicts that this run judged."),
    "calls": (_INT, "Requests that the run sent, with discarded attempts."),
    "day": (_TEXT, "Day on which calls ended (UTC), as an ISO date."),
    "purpose": (
        _TEXT,
        "Purpose of the calls, such as sample, judge, drift or review; unknown if not recorded.",
    ),
    "called_model": (_TEXT, "LiteLLM's name of the called model."),
    "failed_calls": (_INT, "Calls without a usable text: refused, truncated, failed or rejected."),
    "unpriced_calls": (_INT, "Calls of unknown cost; the cost leaves them out."),
    "cached_share": (
        _REAL,
        "Share of the prompt tokens served from the provider's cache; NULL if none was reported.",
    ),
}
COLUMNS |= {
    f"{name}_ci_{end}": (
        _REAL,
        f"{side} end of the 95 % interval of `{name}` over tasks; NULL if too few differ.",
    )
    for name in (
        "escalated_share",
        "thousand_usd",
        "ranking_tau",
        "score_change",
        "gap",
        "kappa",
        "macro_f1",
        "agreement",
    )
    for end, side in (("low", "Lower"), ("high", "Upper"))
}
