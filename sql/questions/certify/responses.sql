-- One row: a response, with the hash of its text in the place of the text.
select
    response_id,
    task_id,
    conversation_id,
    model,
    model_config_hash,
    trial,
    vintage,
    source,
    status,
    sha256(text) as text_sha256,
    chars_alnum,
    completion_tokens,
    cost_usd,
    strftime(created_at at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')
        as created_at
from responses
where benchmark = $benchmark and dataset_revision = $revision
order by response_id
