-- One row: a verdict on an original criterion, in one of its readings.
--
-- A verdict on a rewritten criterion counts for the original one. A ternary
-- verdict is also read as a binary one, without a call: partly met is not met.
--
-- built as: view
-- depends on: criterion_variants, verdicts
with superseded as (
    -- A criterion whose neighbours in a call have changed is judged again with
    -- them; the last of its verdicts counts.
    select unnest(list(verdict_id order by created_at desc, verdict_id)[2:]) as verdict_id
    from verdicts
    where piece_hash is not null
    group by response_id, criterion_id, criterion_hash, judge, judge_config_hash, template_hash,
        grading, judge_trial
    having count(*) > 1
),

mapped as (
    select
        verdicts.* exclude (criterion_id, criterion_hash),
        coalesce(variants.original_id, verdicts.criterion_id) as criterion_id,
        coalesce(variants.original_hash, verdicts.criterion_hash) as criterion_hash,
        coalesce(variants.rubric, 'original') as rubric,
        verdicts.criterion_hash as judged_hash,
        verdicts.probability as judged_probability,
        verdicts.cost_usd as judged_cost_usd
    from verdicts
    anti join superseded using (verdict_id)
    left join criterion_variants as variants
        on verdicts.benchmark = variants.benchmark
            and verdicts.dataset_revision = variants.dataset_revision
            and verdicts.task_id = variants.task_id
            and verdicts.criterion_id = variants.criterion_id
            and verdicts.criterion_hash = variants.content_hash
),

-- A join, not a union: a union would keep all verdicts in memory first.
readings as (
    select
        mapped.* replace (
            coalesce(gradings.reading, mapped.grading) as grading,
            case when is_binary and status = 'partial' then 'unmet' else status end as status,
            case when is_binary and value = 0.5 then 0 else value end as value,
            case when is_binary then 0 else cost_usd end as cost_usd,
            case
                when is_binary then null
                when probability is null and mapped.grading = 'binary'
                    then case when value = 1 then confidence else 1 - confidence end
                else probability
            end as probability
        )
    from mapped
    left join (
        values ('ternary', 'ternary', false), ('ternary', 'ternary_as_binary', true)
    ) as gradings (grading, reading, is_binary)
        on mapped.grading = gradings.grading
)

select
    verdict_id,
    response_id,
    benchmark,
    dataset_revision,
    task_id,
    model,
    trial,
    vintage,
    judge,
    judge_config_hash,
    served_model,
    served_fingerprint,
    template_hash,
    grading,
    judge_trial,
    source,
    import_batch,
    may_hide_failures,
    status,
    value,
    explanation,
    probability,
    confidence,
    n_in_call,
    position_in_call,
    piece_hash,
    decided_by,
    escalated_because,
    prompt_tokens,
    cached_tokens,
    completion_tokens,
    cost_usd,
    members_usd,
    input_usd_per_mtok,
    cached_usd_per_mtok,
    output_usd_per_mtok,
    price_table,
    latency_s,
    attempts,
    error,
    run_id,
    created_at,
    criterion_id,
    criterion_hash,
    rubric,
    -- As the judge was asked and replied, whatever the reading.
    judged_hash,
    judged_probability,
    judged_cost_usd,
    hash(judge, judge_config_hash, template_hash, grading, judge_trial) as judging_id
from readings
