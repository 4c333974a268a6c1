-- How many verdicts of a cascade are stored, and how many of them its second
-- judge was asked for.
select
    count(*) as n_verdicts,
    count(escalated_because) as n_escalated
from verdicts
where
    benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and judge = $judge
    and judge_config_hash = $judge_config_hash
    and template_hash = $template_hash
