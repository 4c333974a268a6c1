-- One row: a verdict, without the judge's words.
select
    task_id,
    criterion_id,
    criterion_hash,
    response_id,
    verdict_id,
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    source,
    may_hide_failures,
    status,
    value,
    cost_usd
from verdicts
where benchmark = $benchmark and dataset_revision = $revision
order by task_id, criterion_id, response_id, verdict_id
