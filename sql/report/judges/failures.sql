-- What came out of the judges' calls: decisions, and failures by cause, on the
-- answers of the models that are shown.
-- begins with: judgings, shown_answers, shown_tasks
with counted as (
    select
        judgings.judging as grader,
        verdicts.status,
        count(*) as n,
        count(*) filter (verdicts.value is null) as n_failed,
        sum(verdicts.attempts)::bigint as attempts
    from staging.graded_verdicts as verdicts
    semi join shown_tasks on verdicts.task_id = shown_tasks.task_id
    inner join shown_answers using (response_id)
    inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where verdicts.benchmark = $benchmark
        and verdicts.dataset_revision = $revision
        -- What is read in another way is no call of its own.
        and verdicts.grading <> 'ternary_as_binary'
    group by judgings.judging, verdicts.status
)

select grader, status,
    n_failed > 0 as is_failure,
    n,
    n / sum(n) over (partition by grader) as share,
    sum(n) over (partition by grader)::bigint as n_verdicts,
    attempts
from counted
order by grader <> $main, grader, is_failure, n desc, status
