-- name: pairs
-- One row: a model with verdicts in a vintage, under one judge configuration, with
-- the last comparable vintage (NULL without one): the last night, or the base vintage
-- of pinned models, with at least half as many verdicts, in which the judge was in
-- control. Vintages whose coverage reaches the bar on every split are preferred.
--
-- with: revision/revision_judge_drift, revision/revision_verdicts
with later_sets as (
    select task_set_id, judging_id, model, model_config_hash,
        count(*) over (partition by judging_id, model, model_config_hash) as n_sets
    from intermediate.current_vintages
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and vintage = $vintage
        and not is_own_hard
),

-- Vintages at the bar on all of these sets.
at_bar as (
    select vintages.vintage, vintages.model, vintages.model_config_hash, judge, judge_config_hash,
        template_hash, grading, judge_trial
    from intermediate.current_vintages as vintages
    inner join later_sets using (task_set_id, judging_id, model, model_config_hash)
    inner join intermediate.judge_configs using (judging_id)
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and vintages.is_at_bar
    group by all
    having count(*) = any_value(n_sets)
),

judged as (
    select responses.model, model_config_hash, responses.vintage, judge, judge_config_hash,
        template_hash, grading, judge_trial,
        min(responses.created_at) as first_response_at,
        count(*) as n_decided
    from revision_verdicts as verdicts
    inner join responses using (response_id)
    where verdicts.value is not null
        and (
            responses.vintage = 'base'
            or responses.vintage in (select night from runs where night is not null)
        )
    group by all
),

usable as (
    select judged.*, at_bar.model is not null as is_at_bar
    from judged
    left join at_bar
        using (
            vintage, model, model_config_hash, judge, judge_config_hash, template_hash, grading,
            judge_trial
        )
    anti join (
        select judge, judge_config_hash, template_hash, grading, night as vintage
        from revision_judge_drift
        where is_out_of_control
    ) as drifted using (vintage, judge, judge_config_hash, template_hash, grading)
)

select model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial,
    arg_max(earlier.vintage, (earlier.is_at_bar, earlier.first_response_at)) filter (
        earlier.vintage <> $vintage
        and earlier.first_response_at < later.first_response_at
        and 2 * earlier.n_decided >= later.n_decided
    ) as last_vintage
from judged as later
left join usable as earlier
    using (model, model_config_hash, judge, judge_config_hash, template_hash, grading, judge_trial)
where later.vintage = $vintage
group by all
order by all;

-- name: judge_change
-- One row: the judges that decided only in the last night and those that decided only
-- in this one, as a text; no row unless there are both.
with judged as (
    select runs.night, judge, judge_config_hash, template_hash, grading,
        min(started_at) as started_at
    from verdicts
    inner join runs using (run_id)
    where benchmark = $benchmark and runs.night is not null and value is not null
    group by all
),

tonight as (
    from judged where night = $night
),

earlier as (
    from judged where started_at < (select min(started_at) from tonight)
),

last_night as (
    from earlier where night = (select arg_max(night, started_at) from earlier)
),

old_judges as (
    select string_agg(distinct judge, ', ' order by judge) as old_names
    from last_night
    anti join tonight using (judge, judge_config_hash, template_hash, grading)
),

new_judges as (
    select string_agg(distinct judge, ', ' order by judge) as new_names
    from tonight
    anti join last_night using (judge, judge_config_hash, template_hash, grading)
)

select old_names || ' → ' || new_names
    || if(old_names = new_names, ' (another configuration)', '') as change
from old_judges, new_judges
where change is not null;

-- name: frequent_errors
-- One row: a model or judge with failed calls in a run, and its most frequent error.
select 'model' as kind, model as label, mode(error) as error
from responses
where run_id = $run_id and error is not null
group by model
union all
select 'judge', judge, mode(error)
from verdicts
where run_id = $run_id and error is not null
group by judge;
