-- Spearman's rank correlation of length and score: of each model over its tasks
-- (level `tasks`), or over the models of one sampling (`models`), under one
-- judge. With two models it is always 1 or -1, so it has no meaning, and only a
-- request for all levels returns it.
--
-- with: figures/lengths/shown_scores
select
    judge_config,
    split,
    is_hard,
    coalesce(entry, '(over the models)') as model,
    measure,
    if(measure = 'chars_alnum', 'letters and digits', 'tokens') as length_in,
    rank_correlation,
    ci_low,
    ci_high,
    is_small,
    n,
    level,
    score_name,
    vintage,
    correlations.model as model_label,
    model_config_hash,
    judge,
    judge_trial,
    grading,
    judge_config_hash,
    template_hash
from length_correlations as correlations
inner join $shown_sets using (split, is_own_hard)
natural join $shown_judge_configs
natural left join $entries
left join shown_scores using (judge_config, entry, split, is_own_hard)
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and score_name = $score
    and ($level is null or level = $level)
    and (
        shown_scores.entry is not null
        or (
            level = 'models'
            and (n > 2 or $level is null)
            and vintage in (select shown.vintage from $entries as shown)
        )
    )
order by judge_config <> $main, judge_config, is_hard, split, measure, level desc, vintage,
    rank_correlation desc nulls last, model;
