-- The latest evaluation of two judges on some splits.
select evaluation_id
from cascade_rules
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and cheap_judge = $cheap_judge
    and strong_judge = $strong_judge
    and evaluated_splits = $evaluated_splits::varchar[]
order by created_at desc
limit 1
