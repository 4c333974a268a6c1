-- One row: a judge with verdicts from elsewhere than one import, but for people
-- who label.
select distinct judge
from verdicts
where benchmark = $benchmark
    and import_batch is distinct from $batch
    and (benchmark, judge) not in (select (benchmark, judge) from labellers)
order by judge
