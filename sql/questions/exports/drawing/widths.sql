-- One row: how wide the interval of a debiased score is now, on the task set
-- with the most tasks, and how many labels it rests on.
select
    model,
    n_labels,
    debiased_ci_high - debiased_ci_low as width
from debiased_scores
where
    benchmark = $benchmark
    and dataset_revision = $revision
    and judge = $judge
    and list_contains($vintages::varchar[], vintage)
    and score_name = $score
    and breakdown = $breakdown
    and label = $label
    and debiased is not null
qualify
    row_number() over (
        partition by model
        order by is_latest desc, n_tasks desc, split
    ) = 1
order by model
