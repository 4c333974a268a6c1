-- Where do models fail: of each category's criteria the share that failed, and
-- of all failures the category's share?
select model, split, category, n_failed, n_decided,
    round(failure_rate, 3) as failure_rate,
    round(failure_share, 3) as failure_share
from failure_rates
where is_latest and not is_own_hard
order by model, split, failure_share desc nulls last
