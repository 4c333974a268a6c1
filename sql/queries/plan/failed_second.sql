-- One row: a response with how many of a cascade's verdicts on it are to be
-- made again because its second judge failed.
select verdicts.response_id, count(*) as n_criteria
from verdicts
inner join intermediate.rubric_criteria as criteria
    on verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
        and verdicts.criterion_hash = criteria.content_hash
where list_contains($responses::varchar[], verdicts.response_id)
    and verdicts.judge = $judge
    and verdicts.judge_config_hash = $judge_config_hash
    and verdicts.template_hash = $template_hash
    and verdicts.grading = $grading
    and verdicts.judge_trial = $judge_trial
    and criteria.rubric = $rubric
    and verdicts.escalated_because is not null
    and list_contains($again::varchar[], verdicts.status)
group by verdicts.response_id
