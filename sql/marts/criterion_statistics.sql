with panels as (
    select distinct
        panel_id,
        vintage,
        judge,
        judge_config_hash,
        template_hash,
        grading,
        judge_trial
    from series
)

select
    criterion_verdicts.benchmark,
    criterion_verdicts.dataset_revision,
    criterion_verdicts.task_id,
    tasks.field,
    tasks.topic,
    criterion_verdicts.criterion_id,
    criteria.title,
    criteria.category,
    criteria.weight,
    criteria.severity,
    panels.vintage,
    panels.judge,
    panels.judge_config_hash,
    panels.template_hash,
    panels.grading,
    panels.judge_trial,
    criterion_verdicts.n_models,
    criterion_verdicts.n_models_met,
    criterion_verdicts.n_responses,
    criterion_verdicts.met_share,
    criterion_verdicts.met_share = 0 as is_never_met,
    criterion_verdicts.met_share = 1 as is_always_met,
    criterion_verdicts.rest_correlation,
    criterion_verdicts.rest_correlation_high,
    disagreements.n_graded,
    disagreements.disagreement
from criterion_verdicts
inner join panels using (panel_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
left join disagreements
    using (benchmark, dataset_revision, task_id, criterion_id)
