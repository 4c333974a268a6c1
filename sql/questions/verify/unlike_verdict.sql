-- One row: a verdict whose value is not that of its status; failures have none.
select
    status,
    value
from verdicts
where
    value is distinct from case status
        when 'met' then 1
        when 'partial' then 0.5
        when 'unmet' then 0
    end
limit 1
