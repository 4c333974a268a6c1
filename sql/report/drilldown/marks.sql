-- What became of the criteria of every answer under every judging, as one
-- letter each, in the order of the rubric; where not all have one, with their
-- places.
-- begins with: entries, judgings, shown_answers, shown_verdicts
with outdated as (
    -- An answer to an earlier conversation, beside one to today's in the same
    -- trial: the task's page shows the latter.
    select older.response_id
    from shown_answers as older
    semi join shown_answers as newer
        on older.entry = newer.entry
            and older.task_id = newer.task_id
            and older.trial = newer.trial
            and not newer.is_older
    where older.is_older
),

decided as (
    select entry, judging, trial, task_id, position, coalesce(marks.mark, $unknown) as mark
    from shown_verdicts
    left join $marks as marks (status, mark) using (status)
    anti join outdated using (response_id)
),

-- A response that failed: its criteria are wanted, and nobody could decide
-- them.
lost as (
    select entries.entry, judgings.judging, wanted_responses.trial, wanted_responses.task_id,
        criteria.position,
        $lost as mark
    from staging.wanted_responses
    inner join staging.model_runs using (model_run_id, benchmark, dataset_revision)
    inner join entries using (model, model_config_hash, vintage)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    inner join criteria using (benchmark, dataset_revision, task_id)
    anti join outdated using (response_id)
    where benchmark = $benchmark
        and dataset_revision = $revision
        and wanted_responses.status <> 'ok'
)

select entry, judging, trial, task_id,
    string_agg(mark, '' order by position) as marks,
    if(count(*) = any_value(tasks.n_criteria), null, list(position order by position)) as positions
from (
    select * from decided
    union all by name
    select * from lost
)
inner join tasks using (task_id)
where tasks.benchmark = $benchmark and tasks.dataset_revision = $revision
group by entry, judging, trial, task_id
order by entry, judging, trial, task_id
