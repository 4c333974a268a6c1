select *
from board_figures
where cut <> 'all'
