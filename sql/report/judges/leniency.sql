-- How much more often each grader says "met" than the others do on the same
-- criteria, of all samplings.
select grader, kind, leniency, met_share, others_met_share, n
from judge_leniency
where benchmark = $benchmark and dataset_revision = $revision
order by leniency desc, grader
