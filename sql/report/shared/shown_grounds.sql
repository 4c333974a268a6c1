-- One row: a verdict that is shown, with what it rests on where that is not the
-- criterion's own words and the whole answer: `asked` are the words that were
-- asked, `chunks` what was found in the chunks of an answer that is too long
-- for its judge.
-- begins with: shown_verdicts
with found as (
    select task_id, verdict_id,
        list({
            round: "round",
            chunk: chunk_number,
            of: n_chunks,
            status: status,
            found: evidence
        } order by "round", chunk_number) as chunks
    from evidence
    where benchmark = $benchmark and dataset_revision = $revision
    group by task_id, verdict_id
)

select verdicts.*, variants.title as asked, found.chunks
from shown_verdicts as verdicts
left join criterion_variants as variants
    on verdicts.benchmark = variants.benchmark
        and verdicts.dataset_revision = variants.dataset_revision
        and verdicts.task_id = variants.task_id
        and verdicts.criterion_id = variants.original_id
        and verdicts.criterion_hash = variants.original_hash
        and verdicts.rubric = variants.rubric
left join found on verdicts.task_id = found.task_id and verdicts.verdict_id = found.verdict_id
