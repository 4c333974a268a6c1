-- Every criterion of a revision. A rule that cannot be asked (no weight,
-- unknown class) passes here: another one has already found the reason.
select
    criteria.task_id || '/' || criteria.criterion_id as key,
    criteria.task_id,
    'criterion ' || criteria.criterion_id || ': weight '
    || coalesce(criteria.weight_text, criteria.weight::varchar, 'missing')
    || ', class ' || coalesce(criteria.severity, 'missing')
    || ', category ' || coalesce(criteria.category, 'missing') as note,
    criteria.weight,
    criteria.weight - trunc(criteria.weight) as weight_fraction,
    coalesce(criteria.severity, '(none)') as severity,
    coalesce(
        criteria.weight between severities.min_weight and severities.max_weight,
        true
    ) as is_in_band,
    labels.label is not null as is_category_known,
    count(*) over (partition by criteria.task_id, criteria.criterion_id)
        as n_same_id,
    count(*) over (partition by criteria.task_id, criteria.title)
        as n_same_title,
    not regexp_matches(criteria.title, '[^\s\pZ\x0b\x0c\x1c-\x1f\x85]')
        as is_title_blank
from criteria
inner join tasks using (benchmark, dataset_revision, task_id)
left join severities
    on
        criteria.benchmark = severities.benchmark
        and criteria.severity = severities.severity
left join labels
    on
        criteria.benchmark = labels.benchmark
        and labels.field in ('', coalesce(tasks.field, ''))
        and labels.kind = 'category'
        and criteria.category = labels.label
where criteria.benchmark = $benchmark and criteria.dataset_revision = $revision
order by criteria.task_id, criteria.position
