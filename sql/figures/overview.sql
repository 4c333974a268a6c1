-- name: response_counts
-- Number of responses of each model to the report's tasks, of unusable ones, and
-- of judged ones.
--
-- with: revision/revision_verdicts, figures/shared/shown_responses, figures/shared/shown_tasks
with judged as (
    select response_id
    from revision_verdicts
    natural join $shown_judge_configs
)

select
    entry as model,
    count(*) as n_responses,
    count(*) filter (status <> 'ok') as n_failed,
    list(distinct status order by status) filter (status <> 'ok') as causes,
    count(*) filter (response_id in (select response_id from judged)) as n_judged
from shown_responses
semi join shown_tasks using (task_id)
group by entry
order by entry;

-- name: changed_tasks
-- The tasks behind each significant change: for each model and judge the ten that
-- changed most in the same direction.
--
-- with: figures/shared/change_values, figures/shared/shown_tasks
with changed as (
    select *,
        later_value - earlier_value as difference,
        avg(difference) over (
            partition by model, model_config_hash, judge, judge_config_hash,
                template_hash, grading, judge_trial, split
        ) as mean_difference
    from change_values
    semi join shown_tasks using (task_id)
    where p_adjusted <= 0.05
),

-- A task may be in several splits.
ranked as (
    select distinct model, model_config_hash, judge, judge_config_hash, template_hash, grading,
        judge_trial, earlier, later, task_id, difference,
        earlier_value as earlier_score,
        later_value as later_score
    from changed
    where difference * sign(mean_difference) > 0
)

select
    judge_config,
    entry as model,
    task_id,
    field,
    topic,
    earlier,
    later,
    earlier_score,
    later_score,
    difference,
    ranked.model as model_label,
    model_config_hash
from ranked
inner join tasks using (task_id)
inner join $entries as entries using (model, model_config_hash)
natural join $shown_judge_configs
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and ranked.later = entries.vintage
qualify row_number() over (
    partition by judge_config, entry
    order by abs(difference) desc, task_id
) <= 10
order by judge_config <> $main, judge_config, model, abs(difference) desc, task_id;

-- name: changes
-- Change of each model from its last comparable vintage to its shown one, over
-- the tasks with a complete trial in both. Interval and p-value (corrected
-- for all rows) come from resampling tasks: `prbench diff EARLIER LATER --model
-- MODEL`.
--
-- with: figures/shared/change_values
with paired as (
    select
        changed.* exclude (task_id, earlier_value, later_value),
        round(exact_avg(earlier_value), 12) as earlier_mean,
        round(exact_avg(later_value), 12) as later_mean,
        round(exact_avg(later_value - earlier_value), 12) as difference,
        count(*) as n_tasks
    from change_values as changed
    group by all
)

select
    judge_config,
    entry as model,
    split,
    earlier,
    later,
    earlier_mean,
    later_mean,
    difference,
    ci_low,
    ci_high,
    p_adjusted,
    coalesce(p_adjusted <= 0.05, false) as is_significant,
    n_tasks
from paired
inner join $entries as entries using (model, model_config_hash)
natural join $shown_judge_configs
where paired.later = entries.vintage
order by judge_config <> $main, judge_config, split, p_adjusted nulls last, model;

-- name: drifted
-- Judges that were out of control in their last night.
--
-- with: revision/revision_judge_drift
select
    judge,
    night,
    agreement,
    n_labelled,
    first_people_agreement,
    people_agreement,
    labels_represent
from revision_judge_drift
qualify night = max(night) over (partition by judge) and is_out_of_control
order by judge;

-- name: facts
-- The numbers of tasks, criteria, responses and verdicts, and their cost, in one row.
--
-- with: revision/revision_tasks, revision/revision_verdicts, figures/shared/shown_responses,
--     figures/shared/shown_tasks
with report_responses as (
    from shown_responses
    semi join shown_tasks using (task_id)
),

sampled as (
    select
        count(*) as n_responses,
        count(*) filter (status <> 'ok') as n_responses_failed,
        count(*) filter (cost_usd is null and source = 'sampled') as n_responses_unpriced,
        exact_sum(cost_usd) as responses_usd
    from report_responses
),

decided as (
    select
        count(*) as n_verdicts,
        count(*) filter (value is null) as n_failed,
        exact_sum(cost_usd) as verdicts_usd,
        count(*) filter (cost_usd is null and source = 'judged') as n_verdicts_unpriced
    from revision_verdicts
    semi join report_responses using (response_id)
    natural join $shown_judge_configs
),

task_counts as (
    select
        count(*) filter (is_admitted) as n_tasks,
        count(*) filter (not is_admitted) as n_refused,
        sum(n_criteria) filter (is_admitted) as n_criteria
    from revision_tasks
    semi join shown_tasks using (task_id)
)

select *
from task_counts, sampled, decided;

-- name: last_run
-- The last night, and the time of the last run.
select
    max(night) as night,
    max(coalesce(ended_at, started_at)) as as_of
from runs;
