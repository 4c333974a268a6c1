-- One row: how many nodes a model was found weak in and how many of these are
-- confirmed, by what it is compared with.
select
    candidates.compared_model,
    count(*) as n_candidates,
    count(*) filter (candidates.is_confirmed) as n_confirmed
from weakness_candidates as candidates
inner join capability_analyses using (analysis_id)
where
    candidates.benchmark = $benchmark
    and candidates.dataset_revision = $revision
    and candidates.model = $model
    and (
        len($judges::varchar[]) = 0
        or list_contains($judges::varchar[], candidates.judge)
    )
    and candidates.grading <> 'ternary_as_binary'
group by candidates.compared_model
order by candidates.compared_model
