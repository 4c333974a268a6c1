-- How many rows did a run make for each model that was asked, or judge, as far
-- as is published, and how many of them did not fail?
select
    'sample' as purpose,
    model as label,
    count(*) as n_rows,
    count(*) filter (status = 'ok') as n_done
from responses
where run_id = $run_id
group by model
union all
select
    'judge' as purpose,
    judge as label,
    count(*) as n_rows,
    count(value) as n_done
from verdicts
where run_id = $run_id
group by judge
order by all
