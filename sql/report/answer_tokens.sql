-- What an answer takes: tokens as the provider reported them (NULL where it reported none), length and time, the mean
-- over a model's answers on each split. Failed answers are counted; only usable ones have a length.
with answers as (
    select
        boards.split,
        entries.entry as model,
        responses.status,
        responses.prompt_tokens,
        responses.cached_tokens,
        responses.completion_tokens,
        responses.reasoning_tokens,
        responses.chars_alnum,
        responses.latency_s
    from responses
    inner join boards using (benchmark, dataset_revision, task_id)
    inner join $entries as entries (model, model_config_hash, vintage, entry)
        using (model, model_config_hash, vintage)
    where
        responses.benchmark = $benchmark
        and responses.dataset_revision = $revision
        and not boards.is_own_hard
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], boards.split))
),

final as (
    select
        split,
        list_contains($hard_splits::varchar[], split) as is_hard,
        model,
        avg(prompt_tokens) as prompt_tokens,
        sum(cached_tokens) / sum(prompt_tokens) filter (cached_tokens is not null)
            as cached_share,
        avg(completion_tokens) as completion_tokens,
        avg(reasoning_tokens) as reasoning_tokens,
        avg(chars_alnum) filter (status = 'ok') as mean_chars_alnum,
        round(favg(latency_s), 6) as latency_s,
        count(*) as n_answers,
        count(*) filter (status <> 'ok') as n_failed
    from answers
    group by split, model
)

select * from final
order by is_hard, split, completion_tokens desc nulls last, model
