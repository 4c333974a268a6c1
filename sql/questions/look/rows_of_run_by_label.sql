-- How many rows that did not fail did a run make for each model that was asked,
-- or judge, as far as is published?
select
    'sample' as purpose,
    model as label,
    count(*) filter (status = 'ok') as n_done
from responses
where run_id = $run_id
group by model
union all
select
    'judge' as purpose,
    judge as label,
    count(value) as n_done
from verdicts
where run_id = $run_id
group by judge
order by all
