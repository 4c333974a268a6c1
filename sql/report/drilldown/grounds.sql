-- What verdicts on the answers to some tasks rest on where that is not the
-- criterion's own words and the whole answer: the words that were asked, and
-- what was found in the chunks of an answer that is too long for its judge. As
-- JSON.
-- begins with: shown_verdicts
with found as (
    select
        verdict_id,
        list({
            round: "round",
            chunk: chunk_number,
            of: n_chunks,
            status: status,
            found: evidence
        } order by "round", chunk_number) as chunks
    from evidence
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and task_id in (select unnest($tasks::varchar[]))
    group by verdict_id
),

rested as (
    select
        verdicts.task_id,
        verdicts.entry,
        verdicts.trial,
        verdicts.judging,
        verdicts.position,
        verdicts.verdict_id,
        variants.title as asked,
        coalesce(found.chunks, []) as chunks
    from shown_verdicts as verdicts
    left join criterion_variants as variants
        on
            verdicts.benchmark = variants.benchmark
            and verdicts.dataset_revision = variants.dataset_revision
            and verdicts.task_id = variants.task_id
            and verdicts.criterion_id = variants.original_id
            and verdicts.criterion_hash = variants.original_hash
            and verdicts.rubric = variants.rubric
    left join found on verdicts.verdict_id = found.verdict_id
    where
        verdicts.grading <> 'ternary_as_binary'
        and list_contains($tasks::varchar[], verdicts.task_id)
        and (variants.title is not null or found.chunks is not null)
)

select
    task_id,
    entry,
    to_json(list({
        trial: trial,
        judging: judging,
        position: position,
        asked: asked,
        chunks: chunks
    } order by trial, judging, position, verdict_id)) as grounds
from rested
group by task_id, entry
order by task_id, entry
