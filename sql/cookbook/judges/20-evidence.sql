-- What was found, chunk by chunk, in the responses that were too long to be
-- judged whole?
with judge as (
    -- The judge: the main one. For another one, `where judge = 'its name'`.
    select benchmark, dataset_revision, judge, judge_config_hash, template_hash, grading,
        judge_trial
    from judge_configurations
    where is_main
),

details as (
    select verdict_id, model, vintage, judge, task_id, criterion_id, title, status
    from verdict_details
    natural join judge
    where is_latest
),

searched as (
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

select details.model, details.vintage, details.judge, details.task_id, details.title,
    details.status as verdict,
    searched.round, searched.chunk_number, searched.n_chunks, searched.first_char, searched.status,
    array_to_string(searched.evidence, ' | ') as evidence
from searched
inner join details using (verdict_id)
where searched.evidence is null or len(searched.evidence) > 0
order by details.model, details.task_id, details.criterion_id, verdict_id, searched.round,
    searched.chunk_number
