-- One row: a figure without an interval, with its score in each trial.
select
    figure_id,
    list(trial_scores.mean_score order by trial) as scores
from trial_scores
inner join stale_figures
    using (task_set_id, model_run_id, breakdown, label, score_name)
group by figure_id
