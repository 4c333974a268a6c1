-- Which runs made verdicts?
select distinct run_id from verdicts
where benchmark = $benchmark
order by run_id
