-- The last look at each model of a night beside its earlier nights.
select model, vintage, compared_vintage, judge, score_name, n_tasks, n_tasks_evaluated,
    n_tasks_planned, mean_difference, unbiased_difference, sequence_low, sequence_high,
    comparison_alpha, least_difference, decision
from stopping_looks
where stopping_id = $stopping_id and compared_vintage = $compared_vintage
qualify row_number() over (partition by model order by block desc) = 1
order by model
