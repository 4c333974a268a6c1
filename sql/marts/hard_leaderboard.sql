select * exclude (is_own_hard, cut, label)
from board_figures
where is_own_hard and cut = 'all'
