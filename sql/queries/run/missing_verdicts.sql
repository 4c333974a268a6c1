-- The criteria of some answers that a judging has not decided: answers in the
-- order given, criteria in the rubric's.
with chosen as (
    select
        unnest($responses::varchar[]) as response_id,
        generate_subscripts($responses::varchar[], 1) as place
),

done as (
    select verdicts.response_id, verdicts.criterion_id, verdicts.criterion_hash
    from verdicts
    semi join chosen on verdicts.response_id = chosen.response_id
    where verdicts.judge = $judge
        and verdicts.judge_config_hash = $judge_config_hash
        and verdicts.template_hash = $template_hash
        and verdicts.grading = $grading
        and verdicts.judge_trial = $judge_trial
        and not (
            list_contains($again::varchar[], verdicts.status)
            or ($retry_failed and verdicts.value is null)
        )
)

select responses.response_id, responses.benchmark, responses.dataset_revision, responses.task_id,
    responses.conversation_id, responses.model, responses.trial, responses.vintage, responses.text,
    criteria.criterion_id,
    criteria.content_hash as criterion_hash,
    criteria.title, criteria.position, criteria.weight, criteria.category
from chosen
inner join responses using (response_id)
inner join intermediate.rubric_criteria as criteria using (benchmark, dataset_revision, task_id)
anti join done
    on responses.response_id = done.response_id
        and criteria.criterion_id = done.criterion_id
        and criteria.content_hash = done.criterion_hash
where responses.status = 'ok' and criteria.rubric = $rubric
order by chosen.place, criteria.position
