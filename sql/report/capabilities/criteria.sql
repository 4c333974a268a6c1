-- The criteria of each leaf of the trees, those that the models shown handle
-- worst first, under the main judge; at most $most_criteria of a leaf.
-- begins with: shown_verdicts
with handled as (
    select shown_verdicts.task_id, shown_verdicts.criterion_id, avg(shown_verdicts.value) as value
    from shown_verdicts
    where judging = $main and not is_older
    group by shown_verdicts.task_id, shown_verdicts.criterion_id
)

select members.node_id, members.task_id, members.criterion_id, criteria.title, criteria.weight,
    if(criteria.weight < 0, 1 - handled.value, handled.value) as handled
from capability_members as members
inner join capability_nodes as nodes
    on members.tree_id = nodes.tree_id and members.node_id = nodes.node_id
inner join criteria
    on members.benchmark = criteria.benchmark
        and members.dataset_revision = criteria.dataset_revision
        and members.task_id = criteria.task_id
        and members.criterion_id = criteria.criterion_id
left join handled
    on members.task_id = handled.task_id and members.criterion_id = handled.criterion_id
where members.benchmark = $benchmark and members.dataset_revision = $revision and members.is_leaf
qualify
    row_number() over (
        partition by members.node_id
        order by handled nulls last, members.task_id, members.criterion_id
    )
    <= $most_criteria
order by members.node_id, handled nulls last, members.task_id, members.criterion_id
