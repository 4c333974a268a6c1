-- The verdicts on the answers to some tasks that judges were asked for, with
-- their places, and all verdicts that the same calls gave: the ledger knows
-- only the one that a call was made for. Without $is_all only those that
-- failed.
-- begins with: shown_grounds
with wanted as (
    select task_id, entry, judging, trial, is_older, position,
        -- Of a cascade, as of an answer in chunks, only the last call is shown.
        chunks is not null or decided_by is not null as is_in_chunks,
        verdict_id
    from shown_grounds
    where source = 'judged'
        and grading <> 'ternary_as_binary'
        and list_contains($tasks::varchar[], task_id)
        and ($is_all or status not in ('met', 'partial', 'unmet'))
),

-- Verdicts on the same text have the same call. Other judges' calls may differ
-- from it in nothing else: the time that a call took sets them apart.
texts as (
    select response_id, hash(conversation_id, text) as text_hash
    from responses
    where list_contains($tasks::varchar[], task_id)
),

calls as (
    select verdicts.verdict_id,
        hash(
            texts.text_hash,
            verdicts.criterion_hash,
            verdicts.template_hash,
            verdicts.grading,
            verdicts.judge_trial,
            coalesce(verdicts.latency_s::varchar, verdicts.judge_config_hash)
        ) as call
    from verdicts
    inner join texts using (response_id)
    where verdicts.source = 'judged' and list_contains($tasks::varchar[], verdicts.task_id)
)

select wanted.task_id, wanted.entry, wanted.judging, wanted.trial, wanted.is_older, wanted.position,
    wanted.is_in_chunks, wanted.verdict_id,
    list(others.verdict_id) as verdict_ids
from wanted
inner join calls using (verdict_id)
inner join calls as others using (call)
group by all
