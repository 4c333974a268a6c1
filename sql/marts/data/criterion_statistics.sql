-- built as: table
-- depends on: intermediate.rankings, temp.criterion_verdicts, temp.disagreements,
--     criteria, tasks
select
    benchmark,
    dataset_revision,
    task_id,
    field,
    topic,
    criterion_id,
    title,
    category,
    weight,
    severity,
    vintage,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    n_models,
    n_models_met,
    n_responses,
    met_share,
    rest_correlation,
    rest_correlation_high,
    n_graded,
    disagreement
from temp.criterion_verdicts
inner join intermediate.rankings using (ranking_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
left join temp.disagreements using (benchmark, dataset_revision, task_id, criterion_id)
