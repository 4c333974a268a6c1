-- The answers that a judging still owes verdicts, with how many. Texts are
-- looked at last, and only of these: a finished night has a million criteria to
-- compare, and nothing to read.
with left_out as (
    select pair[1] as model, pair[2] as task_id
    from (select unnest($left_out::varchar[][]) as pair)
),

answers as (
    select response_id, benchmark, dataset_revision, task_id
    from responses
    anti join left_out using (model, task_id)
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and status = 'ok'
        and list_contains($tasks::varchar[], task_id)
        and list_contains($trials::bigint[], trial)
        and (
            list_contains(
                $configured::varchar[],
                vintage || ' ' || model_config_hash || ' ' || model
            )
            or (
                source = 'imported'
                and vintage = $vintage
                and ($is_any_import or list_contains($imported::varchar[], model))
            )
        )
),

done as (
    select response_id, criterion_id, criterion_hash
    from verdicts
    where judge = $judge
        and judge_config_hash = $judge_config_hash
        and template_hash = $template_hash
        and grading = $grading
        and judge_trial = $judge_trial
        and not (list_contains($again::varchar[], status) or ($retry_failed and value is null))
),

owing as (
    select answers.response_id, count(*) as n_criteria
    from answers
    inner join intermediate.rubric_criteria as criteria using (benchmark, dataset_revision, task_id)
    anti join done
        on answers.response_id = done.response_id
            and criteria.criterion_id = done.criterion_id
            and criteria.content_hash = done.criterion_hash
    where criteria.rubric = $rubric
    group by answers.response_id
)

select owing.response_id, responses.model, owing.n_criteria
from owing
inner join responses using (response_id)
order by responses.task_id, responses.text, responses.model, responses.vintage, responses.trial
