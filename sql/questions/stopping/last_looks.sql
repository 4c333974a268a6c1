-- One row: a comparison's last look, among those that rest on the same things.
select
    model,
    vintage,
    compared_model,
    compared_vintage,
    max(block) as block,
    arg_max(decision, block) as decision
from stopping_looks
where stopping_id = $stopping_id
group by all
