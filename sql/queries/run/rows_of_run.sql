-- One row: how many responses and verdicts a run made.
select
    (select count(*) from responses where run_id = $run_id) as responses_made,
    (select count(*) from verdicts where run_id = $run_id) as verdicts_made
