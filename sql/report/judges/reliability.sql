-- How far all graders agree, and each judge with itself over its repetitions.
select grader_set, n_graders, alpha, alpha_ci_low, alpha_ci_high, unanimous_share, n, n_tasks
from grader_reliability
where benchmark = $benchmark and dataset_revision = $revision and breakdown = 'all'
order by grader_set
