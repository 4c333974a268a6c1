select * exclude (is_own_hard)
from board_figures
where is_own_hard
