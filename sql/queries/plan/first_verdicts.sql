-- What a judge said about criteria in its repetitions, one row each: values in
-- the order of repetitions (NULL where one failed), the confidence of the
-- first, and what a cascade's rule looks at beside them.
select verdicts.response_id, verdicts.criterion_id,
    list(verdicts.value order by verdicts.judge_trial) as first_values,
    first(verdicts.confidence order by verdicts.judge_trial) as confidence,
    any_value(criteria.weight) as weight,
    any_value(criteria.category) as category
from verdicts
inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
where verdicts.benchmark = $benchmark
    and verdicts.dataset_revision = $dataset_revision
    and verdicts.judge_config_hash = $judge_config_hash
    and verdicts.template_hash = $template_hash
    and verdicts.judge_trial <= $n_repetitions
    and verdicts.decided_by is null
group by verdicts.response_id, verdicts.criterion_id
having count(*) = $n_repetitions
order by verdicts.response_id, verdicts.criterion_id
limit 10000
