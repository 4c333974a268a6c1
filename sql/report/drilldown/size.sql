-- How many answers there are to be read.
-- begins with: shown_answers
select count(*) as n_answers
from shown_answers
