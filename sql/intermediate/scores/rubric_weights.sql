-- One row: what a task's rubric is worth, over all its criteria or over those
-- of one category or severity.
--
-- What a task's rubric is worth, over all its criteria (breakdown `all`), over
-- those of each category and of each severity, and over those of each further
-- label that criteria carry.
--
-- built as: table
-- depends on: temp.labelled_criteria
select benchmark, dataset_revision, task_id, breakdown, label, label_key,
    coalesce(round(sum(weight) filter (weight > 0), 12), 0) as positive,
    coalesce(round(sum(weight) filter (weight < 0), 12), 0) as negative,
    count(*) as n_wanted
from temp.labelled_criteria
group by all
