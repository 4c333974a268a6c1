-- Every response of a revision.
select
    response_id as key,
    task_id,
    model || ', task ' || task_id || ', trial ' || trial as note,
    (status = 'ok') = (text is not null) as do_status_and_text_agree,
    status = 'ok'
    and not regexp_matches(coalesce(text, ''), '[^\s\pZ\x0b\x0c\x1c-\x1f\x85]')
        as is_answer_empty
from responses
where benchmark = $benchmark and dataset_revision = $revision
order by response_id
