-- name: stopped_comparisons
-- The last look at each comparison whose evaluation ends when it is settled.
with named as (
    select looks.*,
        coalesce(entries.entry, looks.model) as entry,
        case
            when looks.compared_vintage = 'earlier nights' then looks.compared_vintage
            else coalesce(others.entry, looks.compared_model)
        end as compared_with
    from stopped_comparisons as looks
    left join $entries as entries using (model, model_config_hash, vintage)
    left join $entries as others
        on looks.compared_model = others.model
            and looks.compared_config_hash = others.model_config_hash
            and looks.compared_vintage = others.vintage
    where benchmark = $benchmark and dataset_revision = $dataset_revision
)

select
    entry as model,
    compared_with,
    judge,
    score_name,
    decision,
    mean_difference as difference,
    sequence_low as ci_low,
    sequence_high as ci_high,
    unbiased_difference,
    n_tasks,
    n_tasks_evaluated,
    n_tasks_planned,
    comparison_alpha,
    least_difference,
    looked_at,
    case
        when compared_with = 'earlier nights' then entry || ' - ' || compared_with
        else compared_with || ' - ' || entry
    end as comparison
from named
order by judge, score_name, looked_at desc, model, compared_with;
