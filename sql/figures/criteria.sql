-- name: criteria
-- Criteria worth a second look: a row for each criterion and judge, in each vintage
-- that is current for a model, with the rows of a criterion together.
--
-- with: revision/revision_current_reviews, figures/shared/shown_runs
with shown_rankings as (
    select distinct judge_config, judge, judge_config_hash, template_hash, grading, judge_trial,
        vintage
    from intermediate.leaderboard_rows
    inner join $shown_splits using (split)
    natural join shown_runs
    where breakdown = 'all'
        and not is_own_hard
        and (is_latest or $vintage is not null)
),

listed as (
    select *,
        case $which
            when 'disagreed' then -disagreement
            when 'suspect' then coalesce(rest_correlation_high, 1)
            else -abs(weight)
        end as sort_value,
        if($which = 'suspect', rest_correlation, 0) as tie_value
    from criterion_statistics
    natural join shown_rankings
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        -- Not the binary readings of ternary verdicts: they would repeat
        -- each criterion.
        and grading <> 'ternary_as_binary'
        and case $which
            when 'never-met' then met_share = 0
            when 'always-met' then met_share = 1
            when 'disagreed' then disagreement > 0
            when 'suspect' then rest_correlation < 0
        end
    -- Disagreement of graders does not depend on the judge configuration.
    qualify $which <> 'disagreed'
        or row_number() over (
            partition by task_id, criterion_id
            order by judge_config <> $main, judge_config, vintage
        ) = 1
),

reviews as (
    select task_id, criterion_id,
        nullif(count(*) filter (review_check = 'agree'), 0) as n_reviews,
        -- NULL if no person reviewed it.
        sum(1 - value) filter (review_check = 'agree')::bigint as n_disagreeing,
        string_agg(distinct review_check, ', ' order by review_check) filter (
            review_check <> 'agree' and value = 0
        ) as failed_checks
    from revision_current_reviews
    group by all
),

best as (
    select task_id, criterion_id, min(row(sort_value, tie_value)) as best_keys
    from listed
    group by all
    order by best_keys, task_id, criterion_id
    limit $n_criteria
)

select
    task_id,
    criterion_id,
    category,
    weight,
    met_share,
    n_models_met,
    n_models,
    n_responses,
    rest_correlation,
    rest_correlation_high,
    disagreement,
    n_graded,
    n_reviews,
    n_disagreeing,
    failed_checks,
    judge_config,
    judge,
    judge_trial,
    vintage,
    title
from listed
inner join best using (task_id, criterion_id)
left join reviews using (task_id, criterion_id)
order by best_keys, task_id, criterion_id, sort_value, tie_value, judge_config <> $main,
    judge_config, vintage;
