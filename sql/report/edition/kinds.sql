-- The kinds of labels that tasks or criteria of the data set have, refused
-- tasks too; `is_own` are those that only some benchmarks have, `is_category`
-- those of them that are the category by another name. What every task has
-- (turns, reference texts) is a kind where tasks differ in it.
with kinds as (
    select
        unnest([
            {'kind': 'topic', 'n': count(distinct topic)},
            {'kind': 'expert', 'n': count(distinct expert)},
            {'kind': 'decision_type', 'n': count(*) filter (len(decision_types) > 0)},
            {'kind': 'economic_pathway', 'n': count(*) filter (len(economic_pathways) > 0)},
            {'kind': 'turns', 'n': count(distinct turns) - 1},
            {'kind': 'reference_texts', 'n': count(distinct has_reference_texts) - 1}
        ], recursive := true),
        false as of_criteria,
        false as is_own
    from tasks
    where benchmark = $benchmark and dataset_revision = $revision
    union all
    select
        unnest([
            {'kind': 'category', 'n': count(distinct category)},
            {'kind': 'severity', 'n': count(distinct severity)}
        ], recursive := true),
        true as of_criteria,
        false as is_own
    from criteria
    where benchmark = $benchmark and dataset_revision = $revision
    union all
    select kind, count(*) as n, false as of_criteria, true as is_own
    from labelled_tasks
    where benchmark = $benchmark
        and dataset_revision = $revision
        and kind not in ('decision_type', 'economic_pathway')
    group by kind
    union all
    select kind, count(*) as n, true as of_criteria, true as is_own
    from criterion_labels
    where benchmark = $benchmark and dataset_revision = $revision
    group by kind
),

-- Of criteria, a kind with the label that is the category of each says nothing
-- further.
other_than_category as (
    select kind
    from criterion_labels
    inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and label is distinct from category
)

select kind, of_criteria, is_own,
    of_criteria and is_own and kind not in (from other_than_category) as is_category
from kinds
where n > 0
order by is_own, of_criteria, kind
