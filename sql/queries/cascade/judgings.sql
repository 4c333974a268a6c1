-- The ways in which two judges have judged: by configuration, template, grading
-- and repetition, with how many verdicts there are and what they cost on
-- average.
with verdicts_that_count as (
    select graded.judge, graded.judge_config_hash, graded.template_hash, graded.grading,
        graded.judge_trial, graded.confidence, graded.cost_usd, graded.prompt_tokens
    from intermediate.graded_verdicts as graded
    inner join criteria
        on graded.benchmark = criteria.benchmark
            and graded.dataset_revision = criteria.dataset_revision
            and graded.task_id = criteria.task_id
            and graded.criterion_id = criteria.criterion_id
            and graded.criterion_hash = criteria.content_hash
    inner join tasks
        on graded.benchmark = tasks.benchmark
            and graded.dataset_revision = tasks.dataset_revision
            and graded.task_id = tasks.task_id
    where graded.benchmark = $benchmark
        and graded.dataset_revision = $revision
        and graded.judge in ($cheap, $strong)
        and graded.grading <> 'ternary_as_binary'
        and tasks.is_admitted
        and (len($splits::varchar[]) = 0 or list_has_any(tasks.splits, $splits::varchar[]))
)

select judge, judge_config_hash, template_hash, grading, judge_trial,
    count(*) as n_verdicts,
    count(confidence) as n_confidence,
    -- What another row's call answered was free, and says nothing of the price.
    round(avg(cost_usd) filter (coalesce(prompt_tokens, 1) > 0), 12) as mean_usd
from verdicts_that_count
group by judge, judge_config_hash, template_hash, grading, judge_trial
order by judge, n_verdicts desc, judge_config_hash, template_hash, judge_trial
