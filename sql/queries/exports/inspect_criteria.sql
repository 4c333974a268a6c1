-- One row: a criterion of a response of a model run, decided or not, in the
-- order of the rubrics.
select judged.response_id, judged.criterion_id, criteria.title, criteria.category,
    criteria.severity, criteria.weight, judged.status, judged.value, verdicts.explanation,
    verdicts.error, verdicts.may_hide_failures, verdicts.prompt_tokens, verdicts.cached_tokens,
    verdicts.completion_tokens, verdicts.cost_usd, verdicts.created_at
from intermediate.judged_criteria as judged
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
left join verdicts on judged.verdict_id = verdicts.verdict_id
where judged.model_run_id = $model_run
    and list_contains($response_ids::varchar[], judged.response_id)
order by judged.response_id, criteria.position
