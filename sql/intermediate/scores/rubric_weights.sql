-- One row: the sums of a task's weights, over all its criteria (breakdown `all`)
-- or those of one category, severity, or further label.
--
-- built as: table
-- depends on: temp.labelled_criteria
select
    benchmark,
    dataset_revision,
    task_id,
    breakdown,
    label,
    label_key,
    coalesce(round(sum(weight) filter (weight > 0), 12), 0) as positive,
    coalesce(round(sum(weight) filter (weight < 0), 12), 0) as negative,
    count(*) as n_wanted
from temp.labelled_criteria
group by all
