-- name: response_counts
-- Number of responses of each model to the report's tasks, of unusable ones, and
-- of judged ones.
select
    entry as model,
    count(*) as n_responses,
    count(*) filter (status <> 'ok') as n_failed,
    list(distinct status order by status) filter (status <> 'ok') as causes,
    count(*) filter (response_id in (select response_id from scoped_verdicts)) as n_judged
from shown_responses
semi join shown_tasks using (task_id)
group by entry
order by entry;

-- name: changed_tasks
-- The tasks behind each significant change: for each model and judge the ten that
-- changed most in the same direction.
with paired as (
    select distinct model, model_config_hash, judge, judge_config_hash, template_hash, grading,
        judge_trial, earlier, later, task_id,
        earlier_value as earlier_score,
        later_value as later_score
    from change_values
    semi join shown_tasks using (task_id)
    where p_adjusted <= 0.05
),

ranked as (
    select *,
        later_score - earlier_score as difference,
        avg(later_score - earlier_score) over (
            partition by model, model_config_hash, judge, judge_config_hash,
                template_hash, grading, judge_trial
        ) as mean_difference
    from paired
)

select judge_config,
    entry as model,
    task_id, field, topic, earlier, later, earlier_score, later_score, difference,
    ranked.model as model_label,
    model_config_hash
from ranked
inner join tasks using (task_id)
inner join entries using (model, model_config_hash)
inner join shown_judge_configs using (judge, judge_config_hash, template_hash, grading, judge_trial)
where tasks.benchmark = $benchmark
    and tasks.dataset_revision = $dataset_revision
    and ranked.later = entries.vintage
qualify row_number() over (
    partition by judge_config, entry
    order by difference * sign(mean_difference) desc, task_id
) <= 10
order by judge_config <> $main, judge_config, model, difference * sign(mean_difference) desc,
    task_id;

-- name: changes
-- Change of each model from its last comparable vintage to its latest one, over
-- the tasks with a complete trial in both. Interval and p-value (corrected
-- for all rows) come from resampling tasks: `prbench diff EARLIER LATER --model
-- MODEL`.
with paired as (
    select
        changed.* exclude (task_id, earlier_value, later_value),
        round(exact_avg(earlier_value), 12) as earlier_mean,
        round(exact_avg(later_value), 12) as later_mean,
        round(exact_avg(later_value - earlier_value), 12) as difference,
        count(*) as n_tasks
    from change_values as changed
    inner join intermediate.task_set_members as members using (split, task_id)
    where members.benchmark = $benchmark
        and members.dataset_revision = $dataset_revision
        and not members.is_own_hard
    group by all
)

select judge_config,
    entry as model,
    split, earlier, later, earlier_mean, later_mean, difference, ci_low, ci_high, p_adjusted,
    coalesce(p_adjusted <= 0.05, false) as is_significant,
    n_tasks
from paired
inner join entries using (model, model_config_hash)
inner join shown_judge_configs using (judge, judge_config_hash, template_hash, grading, judge_trial)
where paired.later = entries.vintage
order by judge_config <> $main, judge_config, split, p_adjusted nulls last, model;

-- name: drifted
-- Judges that were out of control in their last night.
select judge, night, agreement, lower_limit
from judge_drift
where benchmark = $benchmark and dataset_revision = $dataset_revision
qualify night = max(night) over (partition by judge) and is_out_of_control
order by judge;

-- name: facts
-- The numbers of tasks, models, responses and verdicts, in one row.
with of_report as (
    from shown_responses
    semi join shown_tasks using (task_id)
),

sampled as (
    select
        count(*) as n_responses,
        count(*) filter (status <> 'ok') as n_responses_failed,
        count(*) filter (cost_usd is null and source = 'sampled') as n_responses_unpriced,
        exact_sum(cost_usd) as responses_usd
    from of_report
),

decided as (
    select
        count(*) as n_verdicts,
        count(*) filter (value is null) as n_failed,
        exact_sum(cost_usd) as verdicts_usd,
        count(*) filter (cost_usd is null and source = 'judged') as n_verdicts_unpriced
    from scoped_verdicts
    semi join of_report using (response_id)
),

of_tasks as (
    select
        count(*) filter (is_admitted) as n_tasks,
        count(*) filter (not is_admitted) as n_refused,
        sum(n_criteria) filter (is_admitted) as n_criteria
    from tasks
    semi join shown_tasks using (task_id)
    where benchmark = $benchmark and dataset_revision = $dataset_revision
)

select of_tasks.*, sampled.*, decided.*
from of_tasks, sampled, decided;

-- name: last_checks
-- The failed checks of the last run of each suite.
select suite, check_name, expectation, severity, n_evaluated, n_failed
from checks
where benchmark = $benchmark and dataset_revision = $dataset_revision
qualify created_at = max(created_at) over (partition by suite) and not success
order by severity <> 'quarantine', suite, check_name, expectation;

-- name: leaderboard
-- The leaderboard, whole or under each label of a breakdown, on each split and
-- own hard selection, under each judge, with the cost of the responses and of
-- judging them. One unknown cost makes a sum unknown.
-- Without a vintage the latest ones are ranked together; labels with the best
-- means come first. The criteria under a label may all have negative weights,
-- so they get a score that is defined for those too.
with costs as (
    select entry, judge_config, split, is_own_hard,
        case
            when count(*) = count(response_usd) then round(exact_sum(response_usd), 9)
        end as responses_usd,
        case
            when not bool_or(is_verdicts_usd_unknown)
                then round(exact_sum(coalesce(verdicts_usd, 0)), 9)
        end as verdicts_usd
    from scoped_judged_responses
    where $breakdown = 'all'
    group by entry, judge_config, split, is_own_hard
),

ranked as (
    select *, $vintage::varchar is null and is_latest as is_of_latest
    from scoped_displayed_scores
    where breakdown = $breakdown and score_name = if($of_criteria, $label_score, $score)
),

-- The newest vintage of each model, which is not the current one if it covers too little.
newest as (
    select split, is_own_hard, model, model_config_hash, judge, judge_config_hash, template_hash,
        grading, judge_trial,
        count(*) as n_vintages,
        arg_max(vintage, (first_response_at, vintage)) as newest_vintage,
        arg_max(coverage, (first_response_at, vintage)) as newest_coverage
    from intermediate.displayed_scores
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown = 'all'
        and score_name = $score
        and $vintage::varchar is null
    group by all
),

further_trials as (
    select model_run_id,
        list_filter(trials, lambda trial: not list_contains(counted_trials, trial))
            as uncounted_trials
    from intermediate.model_runs
    where benchmark = $benchmark and dataset_revision = $dataset_revision
),

-- Of judges that decide several criteria in one call.
groups as (
    select judge, judge_config_hash, template_hash, grading, judge_configs.judge_trial,
        n_in_call as criteria_per_call,
        effects.change as neighbour_effect,
        effects.change_ci_low as neighbour_effect_ci_low,
        effects.change_ci_high as neighbour_effect_ci_high
    from intermediate.judge_configs
    left join (
        from neighbour_effects
        where benchmark = $benchmark
            and dataset_revision = $dataset_revision
            and arrangement = 'grouped'
            and compared_with = 'alone'
            and measure_of = 'met'
            and breakdown = 'all'
    ) as effects using (judge, judge_config_hash, template_hash, grading)
    where n_in_call > 1
)

select judge_config, split, is_own_hard, is_hard,
    case
        when $breakdown <> 'subset' or label <> 'full' then nullif(label, '')
        when list_contains($hard_splits::varchar[], split) then 'official hard'
        else label
    end as label,
    if(is_of_latest, latest_rank, rank) as rank,
    if(is_of_latest, latest_rank_low, rank_low) as rank_low,
    if(is_of_latest, latest_rank_high, rank_high) as rank_high,
    if(is_of_latest, latest_may_be_first, may_be_first) as may_be_first,
    entry as model,
    mean_score, ci_low, ci_high, is_small, raw_mean_score, raw_ci_low, raw_ci_high,
    hidden_mean_score, hidden_ci_low, hidden_ci_high, trials_mean, trials_ci_low, trials_ci_high,
    mean_lower, mean_upper, n_tasks, n_tasks_full, n_tasks_wanted, n_tasks_annotated, is_complete,
    if(is_of_latest, n_tasks_latest_ranked, n_tasks_ranked) as n_tasks_ranked,
    coverage,
    coverage < $bar and n_tasks_skipped is null as is_below_bar,
    n_tasks_skipped, unbiased_mean_score, is_judged, may_hide_failures, n_trials, met_share,
    met_ci_low, met_ci_high, mean_chars_alnum, mean_completion_tokens, costs.responses_usd,
    costs.verdicts_usd, cost_usd, score_name,
    ranked.model as model_label,
    model_config_hash, vintage, judge, judge_trial, grading, judge_config_hash, template_hash,
    groups.criteria_per_call, groups.neighbour_effect, groups.neighbour_effect_ci_low,
    groups.neighbour_effect_ci_high,
    if(newest_vintage <> vintage, newest_vintage, null) as newer_vintage,
    if(newest_vintage <> vintage, newest_coverage, null) as newer_coverage,
    coalesce(n_vintages, 1) as n_vintages,
    nullif(uncounted_trials, []) as uncounted_trials
from ranked
left join groups using (judge, judge_config_hash, template_hash, grading, judge_trial)
left join costs using (entry, judge_config, split, is_own_hard)
left join newest
    using (
        split, is_own_hard, model, model_config_hash, judge, judge_config_hash, template_hash,
        grading, judge_trial
    )
left join further_trials using (model_run_id)
order by judge_config <> $main, judge_config, is_own_hard, is_hard, split,
    try_cast(label as integer) nulls last,
    -- Values that differ only by rounding are a tie.
    round(avg(mean_score) over (partition by judge_config, split, ranked.label), 9) desc nulls last,
    label, rank nulls last, model;

-- name: last_run
-- The last night, and the time of the last run.
select max(night) as night, max(coalesce(ended_at, started_at)) as as_of from runs;
