-- One row: a call that decided on a criterion, or searched a chunk of an answer
-- for evidence on it.
select judge, judge_config_hash, template_hash, prompt_tokens, cached_tokens, completion_tokens
from verdicts
union all
select judge, judge_config_hash, template_hash, evidence.prompt_tokens, evidence.cached_tokens,
    evidence.completion_tokens
from evidence
inner join verdicts using (verdict_id)
