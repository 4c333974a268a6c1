-- One row: what the failed calls of a run say, the most frequent first.
select error
from (select run_id, error from responses union all select run_id, error from verdicts) as failed
where run_id = $run_id
group by error
order by count(*) desc, error
