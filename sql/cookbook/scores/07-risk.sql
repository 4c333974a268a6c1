-- How many critical criteria does a model meet, and how many critical mistakes
-- does it make?
select split, model, judge,
    round(critical_met_share, 3) as critical_met_share,
    n_critical,
    round(mistake_share, 3) as mistake_share,
    n_mistakes_possible,
    round(responses_with_mistake_share, 3) as responses_with_mistake_share
from severity_leaderboard
where not is_own_hard
order by split, judge, mistake_share, model
