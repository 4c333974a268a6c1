-- One row: how many weights that count are outside of bounds.
select count(*) as n_weights
from criteria
inner join tasks using (task_id)
where tasks.is_admitted and criteria.weight not between ? and ?
