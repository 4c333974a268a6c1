-- People's reviews (agreement with a criterion) and models' reviews (a row for
-- each check), on criteria whose content has not changed since.
--
-- built as: table
-- depends on: expert_reviews, model_reviews, criteria
with findings as (
    select * exclude (findings),
        -- A failed call has no result on any check.
        unnest(if(
            status = 'ok',
            from_json(findings, '[{"name":"VARCHAR","passes":"BOOLEAN","reason":"VARCHAR"}]'),
            [null]
        )) as finding
    from model_reviews
),

reviews as (
    select benchmark, dataset_revision, task_id, criterion_id, criterion_hash,
        'imported' as source,
        import_batch, reviewer,
        1 as review_trial,
        'agree' as review_check,
        if(value = 1, 'pass', 'fail') as status,
        value, explanation, better_wording, sample_id, run_id, created_at
    from expert_reviews
    union all by name
    select * replace (if(status <> 'ok', status, if(finding.passes, 'pass', 'fail')) as status),
        'reviewed' as source,
        finding.name as review_check,
        finding.passes::integer::double as value,
        finding.reason as explanation
    from findings
)

select
    benchmark,
    dataset_revision,
    task_id,
    criterion_id,
    criterion_hash,
    title,
    category,
    severity,
    weight,
    source,
    import_batch,
    sample_id,
    reviewer,
    reviewer_config_hash,
    template_hash,
    review_trial,
    review_check,
    status,
    value,
    explanation,
    better_wording,
    run_id,
    created_at
from reviews
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
where criterion_hash = content_hash
