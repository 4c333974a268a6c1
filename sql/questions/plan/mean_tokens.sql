-- One row: the mean tokens of calls that fit a condition.
select
    avg(prompt_tokens) as prompt,
    avg(cached_tokens) as cached,
    avg(completion_tokens) as completion
from {calls}
where {condition} and prompt_tokens > 0
