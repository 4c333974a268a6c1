-- What was found, chunk by chunk, in the responses that were too long to be
-- judged whole?
with searched as (
    select verdict_id, round, chunk_number, n_chunks, first_char, status, evidence
    from evidence
    -- A response that was split again, because a chunk was too long for the
    -- judge, has the chunks of both splits; the last split counts.
    qualify n_chunks = last_value(n_chunks) over (
        partition by verdict_id, round
        order by created_at, n_chunks
        rows between unbounded preceding and unbounded following
    )
)

select verdicts.model, verdicts.task_id, verdicts.judge, criteria.title,
    verdicts.status as verdict,
    searched.round, searched.chunk_number, searched.n_chunks, searched.first_char, searched.status,
    array_to_string(searched.evidence, ' | ') as evidence
from searched
inner join verdicts using (verdict_id)
left join intermediate.rubric_criteria as criteria
    on verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
        and verdicts.criterion_hash = criteria.content_hash
where searched.evidence is null or len(searched.evidence) > 0
order by verdicts.model, verdicts.task_id, verdicts.judge, criteria.position,
    verdicts.verdict_id, searched.round, searched.chunk_number
