-- What every response of every series adds up to, over its whole rubric and over each category and severity, with
-- what is still undecided. A response that failed is here too: its criteria are wanted and not decided.
with final as (
    select
        wanted.series_id,
        wanted.response_id,
        wanted.task_id,
        wanted.trial,
        wanted.n_trials,
        rubric_parts.cut,
        rubric_parts.label,
        coalesce(decided_parts.points, 0) as points,
        rubric_parts.positive,
        rubric_parts.negative,
        rubric_parts.positive - coalesce(decided_parts.decided_positive, 0)
            as undecided_positive,
        rubric_parts.negative - coalesce(decided_parts.decided_negative, 0)
            as undecided_negative,
        coalesce(decided_parts.n_met, 0) as n_met,
        coalesce(decided_parts.n_decided, 0) as n_decided,
        rubric_parts.n_wanted,
        decided_parts.cost_usd,
        coalesce(decided_parts.is_cost_unknown, false) as is_cost_unknown
    from wanted_responses as wanted
    inner join rubric_parts using (benchmark, dataset_revision, task_id)
    left join decided_parts
        on
            wanted.response_id = decided_parts.response_id
            and wanted.judging_id = decided_parts.judging_id
            and rubric_parts.cut = decided_parts.cut
            and rubric_parts.label = decided_parts.label
)

select * from final
