-- One row: how wide the interval of the debiased difference of two models is
-- now, on the task set with the most tasks, and how many labels it rests on.
select
    array_to_string($models::varchar[], ' ') as model,
    n_labels_a + n_labels_b as n_labels,
    debiased_ci_high - debiased_ci_low as width
from debiased_differences
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and judge = $judge
    and list_contains($vintages::varchar[], vintage)
    and score_name = $score
    and breakdown = 'all'
    and list_sort([model_a, model_b]) = list_sort($models::varchar[])
    and debiased_difference is not null
order by n_tasks desc, split
limit 1
