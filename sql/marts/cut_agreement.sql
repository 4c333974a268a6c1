select * exclude (figure_id, basis)
from agreement_figures
where cut <> 'all'
