-- Every task that the hard selection of its field chose from, hardest first:
-- inside or outside, how far from the border, and how often resampled panels of
-- models select it.
with selected as (
    select field, selection_id, task_id, rank, mean_score
    from hard_subset
    where benchmark = $benchmark
        and dataset_revision = $revision
        and list_contains($selections::varchar[], selection_id)
),

selections as (
    select field, selection_id, count(*) as n_selected
    from selected
    group by field, selection_id
),

stability as (
    select field, selection_id, task_id, mean_score, inclusion_probability, is_border
    from hard_stability
    semi join selections using (selection_id)
),

known as (
    -- Of a selection from before stability was measured there are the members
    -- alone.
    select field, selection_id, task_id,
        coalesce(selected.mean_score, stability.mean_score) as mean_score,
        selected.rank,
        selected.rank is not null as is_selected,
        inclusion_probability, is_border
    from selected
    full join stability using (field, selection_id, task_id)
),

placed as (
    select
        known.* exclude (rank),
        coalesce(
            known.rank,
            n_selected
            + row_number() over (
                partition by selection_id, is_selected
                -- A tie goes by task, and what is equal may differ in the last
                -- digits.
                order by round(mean_score, 12), task_id
            )
        ) as rank,
        (
            max(mean_score) filter (is_selected) over same
            + min(mean_score) filter (not is_selected) over same
        ) / 2 as border
    from known
    inner join selections using (field, selection_id)
    window same as (partition by selection_id)
),

official as (
    select distinct task_id
    from split_members
    where benchmark = $benchmark
        and dataset_revision = $revision
        and list_contains($hard_splits::varchar[], split)
),

final as (
    select placed.*, tasks.topic, tasks.expert, tasks.turns,
        official.task_id is not null as is_member
    from placed
    inner join tasks
        on tasks.benchmark = $benchmark
            and tasks.dataset_revision = $revision
            and placed.task_id = tasks.task_id
    left join official on placed.task_id = official.task_id
)

select field, rank, task_id, topic, expert, turns, mean_score,
    mean_score - border as from_border,
    is_selected, inclusion_probability, is_border,
    -- NULL where no official hard split of the field is stored.
    if(bool_or(is_member) over (partition by field), is_member, null) as is_official
from final
order by field, rank
