-- One row: a judging of some responses, those with the most decided verdicts
-- first. People who label are no judges.
select judging_id, judge, judge_config_hash, template_hash, grading, judge_trial,
    case when grading = 'ternary' then 'ternary' else 'binary' end as steps,
    count(*) as n_verdicts
from intermediate.graded_verdicts
where list_contains($response_ids::varchar[], response_id)
    and rubric = 'original'
    and value is not null
    and (benchmark, judge) not in (select (benchmark, judge) from labellers)
    and ($judges::varchar[] is null or list_contains($judges::varchar[], judge))
group by judging_id, judge, judge_config_hash, template_hash, grading, judge_trial
order by n_verdicts desc, grading = 'ternary_as_binary', judge_trial, judge, judging_id
