-- One row: a name that something stored of a data-set revision has, and the
-- option that chooses it.
select distinct 'split' as option, split as name
from split_members
where benchmark = $benchmark and dataset_revision = $revision
union all
select distinct 'model' as option, model as name
from responses
where benchmark = $benchmark and dataset_revision = $revision
union all
select distinct 'vintage' as option, vintage as name
from responses
where benchmark = $benchmark and dataset_revision = $revision
union all
select distinct 'judge' as option, judge as name
from intermediate.model_runs
where benchmark = $benchmark and dataset_revision = $revision
order by all
