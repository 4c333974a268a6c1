select * exclude (is_own_hard)
from board_figures
where not is_own_hard
