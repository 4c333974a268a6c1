-- One row: a weight class of the benchmark.
select * exclude (benchmark)
from severities
where benchmark = $benchmark
order by severity
