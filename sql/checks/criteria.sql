-- Every criterion of a revision. Without a weight or a known class there is no
-- distance from the band: other expectations find that.
select
    criteria.task_id || '/' || criteria.criterion_id as key,
    criteria.task_id, criteria.criterion_id, criteria.title,
    'criterion ' || criteria.criterion_id || ': weight '
    || coalesce(criteria.weight_text, criteria.weight::varchar, 'missing')
    || ', class ' || coalesce(criteria.severity, 'missing')
    || ', category ' || coalesce(criteria.category, 'missing') as note,
    criteria.weight,
    criteria.weight - trunc(criteria.weight) as weight_fraction,
    coalesce(criteria.severity, '(none)') as severity,
    abs(
        criteria.weight
        - greatest(least(criteria.weight, severities.max_weight), severities.min_weight)
    ) as distance_from_band,
    labels.label as known_category
from criteria
inner join tasks using (benchmark, dataset_revision, task_id)
left join severities
    on criteria.benchmark = severities.benchmark and criteria.severity = severities.severity
left join labels
    on criteria.benchmark = labels.benchmark
        and labels.field in ('', coalesce(tasks.field, ''))
        and labels.kind = 'category'
        and criteria.category = labels.label
where criteria.benchmark = $benchmark and criteria.dataset_revision = $revision
order by criteria.task_id, criteria.position
