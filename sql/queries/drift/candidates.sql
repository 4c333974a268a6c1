-- The verdicts of one judging that make its control set: as many met as unmet
-- ones as far as there are any, of as many tasks as possible, a few criteria of
-- each response. Content alone decides. Answers are materialized so that a text
-- is hashed once and not for each of its verdicts.
with answers as materialized (
    select responses.response_id, responses.conversation_id,
        md5(responses.response_id) as response_order,
        md5(responses.text) as text_hash
    from responses
    inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
    where responses.benchmark = $benchmark
        and responses.dataset_revision = $dataset_revision
        and responses.status = 'ok'
        and tasks.is_admitted
),

-- Equal answers are judged by one call, whose verdict shows only once how
-- steady the judge is.
decided as (
    select verdicts.task_id,
        min(answers.response_order) as response_order,
        arg_min(verdicts.verdict_id, answers.response_order || verdicts.verdict_id) as verdict_id,
        arg_min(verdicts.value, answers.response_order || verdicts.verdict_id) as value
    from verdicts
    inner join answers using (response_id)
    inner join criteria
        on verdicts.benchmark = criteria.benchmark
            and verdicts.dataset_revision = criteria.dataset_revision
            and verdicts.task_id = criteria.task_id
            and verdicts.criterion_id = criteria.criterion_id
            and verdicts.criterion_hash = criteria.content_hash
    where verdicts.benchmark = $benchmark
        and verdicts.dataset_revision = $dataset_revision
        and verdicts.judge = $judge
        and verdicts.judge_config_hash = $judge_config_hash
        and verdicts.template_hash = $template_hash
        and verdicts.grading = $grading
        and verdicts.judge_trial = $judge_trial
        and verdicts.source = 'judged'
        and verdicts.value is not null
    group by verdicts.task_id, answers.text_hash, verdicts.criterion_hash
),

placed as (
    select *,
        dense_rank() over (partition by task_id order by response_order) as response_place,
        row_number() over (
            partition by response_order, value order by md5(verdict_id)
        ) as criterion_place
    from decided
),

ranked as (
    select verdict_id,
        row_number() over (
            partition by value
            order by (criterion_place - 1) // $of_response, response_place, md5(task_id),
                criterion_place
        ) as place
    from placed
),

chosen as (
    select verdicts.*, answers.conversation_id, ranked.place
    from ranked
    inner join verdicts using (verdict_id)
    inner join answers using (response_id)
    -- The first met, the first unmet, the second met, ...: where one kind ends,
    -- the others fill up.
    order by ranked.place, verdicts.value desc
    limit $number
)

select benchmark, dataset_revision, task_id, judge, judge_config_hash, template_hash, grading,
    judge_trial, verdict_id, response_id, conversation_id, criterion_id, criterion_hash, model,
    trial, vintage,
    value as first_value
from chosen
order by place, value desc
