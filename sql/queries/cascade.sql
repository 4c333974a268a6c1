-- name: judge_configs
-- The judge configurations of two judges: configuration, template, grading and
-- repetition, with the number of verdicts and their mean cost.
--
-- with: revision/revision_graded_verdicts
select judging_id, judge, judge_config_hash, template_hash, grading, judge_trial,
    count(*) as n_verdicts,
    -- A verdict from another row's call was free, so it does not show the price.
    round(avg(cost_usd) filter (coalesce(prompt_tokens, 1) > 0), 12) as own_usd,
    -- Without a price of its own, that of another configuration of the judge with the
    -- same model and template, such as another threshold.
    coalesce(
        own_usd,
        max(own_usd) over (partition by judge, template_hash, grading, max(served_model))
    ) as mean_usd
from revision_graded_verdicts
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
where criterion_hash = criteria.content_hash
    and judge in ($cheap, $strong)
    and grading <> 'ternary_as_binary'
    and tasks.is_admitted
    and (len($splits) = 0 or list_has_any(tasks.splits, $splits))
group by judging_id, judge, judge_config_hash, template_hash, grading, judge_trial
order by judge, n_verdicts desc, judge_config_hash, template_hash, judge_trial;

-- name: verdicts
-- One row: a criterion of a response that two judges have judged, with the cheap
-- judge's first and second verdict and the strong judge's (NULL after a failure),
-- and the offset, divisor and number of wanted criteria of the response's primary
-- score.
--
-- with: revision/revision_graded_verdicts
with graded as (
    select response_id, criterion_id, criterion_hash, judging_id, confidence, probability, value
    from revision_graded_verdicts
    where judge in ($cheap, $strong)
        and judging_id in ($first::ubigint, $second::ubigint, $strong_first::ubigint)
),

primary_scores as (
    select bounds.task_id, bounds.offset_points, bounds.denominator, bounds.n_wanted
    from intermediate.score_bounds as bounds
    inner join score_definitions as definitions using (benchmark, score_name)
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and bounds.breakdown = 'all'
        and definitions.is_primary
)

select responses.response_id, responses.task_id, responses.model, responses.vintage,
    criteria.criterion_id, criteria.weight,
    coalesce(criteria.category, '(none)') as category,
    coalesce(criteria.severity, '(none)') as severity,
    kinds_of(criteria.title) as kinds,
    first_verdicts.value as first_value,
    first_verdicts.confidence, first_verdicts.probability,
    second_verdicts.criterion_id is not null as has_second,
    second_verdicts.value as second_value,
    strong_verdicts.value as strong_value,
    coalesce(primary_scores.offset_points, 0) as offset_points,
    primary_scores.denominator,
    coalesce(primary_scores.n_wanted, 0) as n_wanted
from (from graded where judging_id = $first::ubigint) as first_verdicts
inner join (from graded where judging_id = $strong_first::ubigint) as strong_verdicts
    using (response_id, criterion_id, criterion_hash)
left join (from graded where judging_id = $second::ubigint) as second_verdicts
    using (response_id, criterion_id, criterion_hash)
inner join responses using (response_id)
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
inner join tasks using (benchmark, dataset_revision, task_id)
left join primary_scores using (task_id)
where first_verdicts.criterion_hash = criteria.content_hash
    and tasks.is_admitted
    and (len($splits) = 0 or list_has_any(tasks.splits, $splits))
order by responses.task_id, responses.response_id, criteria.position;
