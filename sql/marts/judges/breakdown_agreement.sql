-- built as: view
-- depends on: staging.agreement_figures
select * exclude (figure_id, basis)
from staging.agreement_figures
where breakdown <> 'all'
