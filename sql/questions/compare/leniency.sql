-- Who says "met" more often than the others on the same criteria.
select grader, kind, leniency, met_share, others_met_share, n
from judge_leniency
where benchmark = $benchmark and dataset_revision = $revision
order by leniency desc, grader
