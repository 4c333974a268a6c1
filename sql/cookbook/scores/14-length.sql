-- Do longer responses score higher (figure 7)?
select split,
    coalesce(model, '(over the models)') as model,
    measure,
    round(rank_correlation, 3) as rank_correlation,
    round(ci_low, 3) as ci_low,
    round(ci_high, 3) as ci_high,
    n, judge, vintage
from length_correlations
inner join score_definitions using (benchmark, score_name)
where is_primary and not is_own_hard
order by split, judge, vintage, level, measure, model
