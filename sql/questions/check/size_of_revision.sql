-- One row: how many tasks a revision has, and how many criteria, those of
-- refused tasks too; by the names of the frames that checks look at.
select
    count(*) as rubrics,
    coalesce(sum(n_criteria), 0)::bigint as criteria
from tasks
where benchmark = $benchmark and dataset_revision = $dataset_revision
