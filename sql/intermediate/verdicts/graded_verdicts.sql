-- One row: a verdict on an original criterion, in one of its readings.
--
-- A verdict on a rewritten criterion counts for the original one. A ternary
-- verdict is also read as a binary one, without a call: partly met is not met.
--
-- built as: view
-- depends on: criterion_variants, verdicts
with mapped as (
    select
        verdicts.* exclude (criterion_id, criterion_hash),
        coalesce(variants.original_id, verdicts.criterion_id) as criterion_id,
        coalesce(variants.original_hash, verdicts.criterion_hash) as criterion_hash,
        coalesce(variants.rubric, 'original') as rubric
    from verdicts
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
            coalesce(given.reading, mapped.grading) as grading,
            case when is_binary and status = 'partial' then 'unmet' else status end as status,
            case when is_binary and value = 0.5 then 0 else value end as value,
            case when is_binary then 0 else cost_usd end as cost_usd
        )
    from mapped
    left join (
        values ('ternary', 'ternary', false), ('ternary', 'ternary_as_binary', true)
    ) as given (grading, reading, is_binary)
        on mapped.grading = given.grading
)

select *, hash(judge, judge_config_hash, template_hash, grading, judge_trial) as judging_id
from readings
