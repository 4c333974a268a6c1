-- One row: a model's mean of a score on the tasks of a split that hard
-- selections hold, the best first.
select mean_scores.*
from intermediate.mean_scores
inner join intermediate.model_runs using (model_run_id)
where mean_scores.breakdown = 'all'
    and mean_scores.score_name = $score
    and ($splits = [] or list_contains($splits::varchar[], mean_scores.split))
    and ($models = [] or list_contains($models::varchar[], mean_scores.model))
    and counts_as_judge(
        $judges, mean_scores.benchmark, mean_scores.dataset_revision,
        mean_scores.judge, mean_scores.judge_config_hash
    )
    and (
        $vintage::varchar = 'all'
        or mean_scores.vintage = $vintage
        or ($vintage::varchar is null and model_runs.is_latest)
    )
order by mean_scores.split, mean_scores.judge, mean_scores.judge_config_hash,
    mean_scores.template_hash, mean_scores.judge_trial, mean_scores.grading, mean_scores.vintage,
    mean_scores.raw_mean_score desc nulls last, mean_scores.model
