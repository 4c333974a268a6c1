-- built as: view
-- depends on: intermediate.criterion_verdicts, intermediate.rankings, intermediate.disagreements,
--     criteria, tasks
select
    benchmark,
    dataset_revision,
    task_id,
    tasks.field,
    tasks.topic,
    criterion_id,
    criteria.title,
    criteria.category,
    criteria.weight,
    criteria.severity,
    rankings.vintage,
    rankings.judge,
    rankings.judge_config_hash,
    rankings.template_hash,
    rankings.grading,
    rankings.judge_trial,
    criterion_verdicts.n_models,
    criterion_verdicts.n_models_met,
    criterion_verdicts.n_responses,
    criterion_verdicts.met_share,
    criterion_verdicts.rest_correlation,
    criterion_verdicts.rest_correlation_high,
    disagreements.n_graded,
    disagreements.disagreement
from intermediate.criterion_verdicts
inner join intermediate.rankings using (ranking_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
left join intermediate.disagreements using (benchmark, dataset_revision, task_id, criterion_id)
