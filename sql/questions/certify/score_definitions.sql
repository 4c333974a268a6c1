-- One row: a score of the benchmark, as factors of sums.
select * exclude (benchmark)
from score_definitions
where benchmark = $benchmark
order by score_name
