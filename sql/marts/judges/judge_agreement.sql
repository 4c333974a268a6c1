-- built as: view
-- depends on: intermediate.agreement_figures
select * exclude (breakdown, label, figure_id, basis)
from intermediate.agreement_figures
where breakdown = 'all'
