-- What an answer costs and what judging it costs, in US dollars, beside the score: of each model on each split, under
-- each judge. Means are over the answers whose cost is known; a sum is NULL as soon as one cost is unknown. Answers that
-- nobody has judged stand there without a judge and without a score.
with answers as (
    select
        judgings.judging,
        split,
        entries.entry as model,
        answer_usd,
        if(is_judging_usd_unknown, null, judging_usd) as judging_usd
    from board_answers
    inner join $entries as entries (model, model_config_hash, vintage, entry)
        using (model, model_config_hash, vintage)
    inner join $judgings as judgings (
        judge, judge_config_hash, template_hash, grading, judge_trial, judging
    ) using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and not is_own_hard
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
),

unjudged as (
    select
        null::varchar as judging,
        boards.split,
        entries.entry as model,
        responses.cost_usd as answer_usd,
        null::double as judging_usd
    from responses
    inner join boards using (benchmark, dataset_revision, task_id)
    inner join $entries as entries (model, model_config_hash, vintage, entry)
        using (model, model_config_hash, vintage)
    anti join answers on entries.entry = answers.model
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and not boards.is_own_hard
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], boards.split))
),

costs as (
    select
        judging,
        split,
        model,
        round(favg(answer_usd), 12) as answer_usd,
        round(favg(judging_usd), 12) as judging_usd,
        case
            when count(*) = count(answer_usd) then round(fsum(answer_usd), 9)
        end as all_answers_usd,
        count(*) as n_answers,
        count(*) - count(answer_usd) as n_unpriced_answers
    from (from answers union all by name from unjudged)
    group by all
),

scored as (
    select
        judgings.judging,
        split,
        entries.entry as model,
        mean_score,
        ci_low,
        ci_high,
        coverage
    from board_figures
    inner join $entries as entries (model, model_config_hash, vintage, entry)
        using (model, model_config_hash, vintage)
    inner join $judgings as judgings (
        judge, judge_config_hash, template_hash, grading, judge_trial, judging
    ) using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where
        benchmark = $benchmark
        and dataset_revision = $revision
        and score_name = $score
        and cut = 'all'
        and is_judged
        and not is_own_hard
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split))
),

final as (
    select
        judging,
        split,
        list_contains($hard_splits::varchar[], split) as is_hard,
        model,
        scored.mean_score,
        scored.ci_low,
        scored.ci_high,
        scored.coverage,
        costs.answer_usd,
        costs.judging_usd,
        costs.answer_usd + costs.judging_usd as task_usd,
        costs.all_answers_usd,
        costs.n_answers,
        costs.n_unpriced_answers
    from scored
    left join costs using (judging, split, model)
    union all by name
    select
        judging,
        split,
        list_contains($hard_splits::varchar[], split) as is_hard,
        model,
        answer_usd,
        all_answers_usd,
        n_answers,
        n_unpriced_answers
    from costs
    where judging is null
)

select * from final
order by
    coalesce(judging <> $main, true),
    judging nulls last,
    is_hard,
    split,
    answer_usd nulls last,
    model
