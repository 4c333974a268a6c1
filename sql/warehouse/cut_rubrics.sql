-- One row: a criterion of a variant of the rubric, with the piece of it that a
-- judge of so many criteria a call decides together. Without a size there are no
-- pieces.
create macro cut_rubrics(of_rubric, size) as table
with numbered as (
    select * exclude (rubric, original_id),
        (row_number() over (
            partition by benchmark, dataset_revision, task_id order by position
        ) - 1) // size as call_index
    from intermediate.rubric_criteria
    where rubric = of_rubric
),

pieces as (
    select *,
        case
            when call_index is not null
                then list(content_hash) over (
                    partition by benchmark, dataset_revision, task_id, call_index order by position
                    rows between unbounded preceding and unbounded following
                )
        end as piece
    from numbered
)

select *, md5(array_to_string(piece, ' ')) as piece_hash
from pieces
