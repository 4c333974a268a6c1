-- built as: table
-- depends on: intermediate.model_runs, temp.criterion_verdicts, temp.disagreements,
--     criteria, tasks
with rankings as (
    select distinct ranking_id, vintage, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from intermediate.model_runs
)

select criterion_verdicts.benchmark, criterion_verdicts.dataset_revision,
    criterion_verdicts.task_id, tasks.field, tasks.topic, criterion_verdicts.criterion_id,
    criteria.title, criteria.category, criteria.weight, criteria.severity, rankings.vintage,
    rankings.judge, rankings.judge_config_hash, rankings.template_hash, rankings.grading,
    rankings.judge_trial, criterion_verdicts.n_models, criterion_verdicts.n_models_met,
    criterion_verdicts.n_responses, criterion_verdicts.met_share,
    criterion_verdicts.rest_correlation, criterion_verdicts.rest_correlation_high,
    disagreements.n_graded, disagreements.disagreement
from temp.criterion_verdicts
inner join rankings using (ranking_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
left join temp.disagreements using (benchmark, dataset_revision, task_id, criterion_id)
