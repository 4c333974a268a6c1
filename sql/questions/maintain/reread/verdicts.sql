-- One row: a verdict whose reply is read again.
select
    verdicts.*,
    verdict_id as cell,
    hash(
        conversation_id,
        text,
        criterion_hash,
        template_hash,
        grading,
        judge_trial,
        coalesce(verdicts.latency_s::varchar, judge_config_hash)
    ) as call
from verdicts
left join responses using (response_id)
where
    verdicts.source = 'judged'
    -- That of a cascade rests on replies of two judges.
    and verdicts.decided_by is null
    and (verdicts.value is not null or verdicts.status = 'parse_error')
