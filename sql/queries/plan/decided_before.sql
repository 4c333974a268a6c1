-- The template under which a judge made most of the verdicts that it has not
-- made under today's, and how many those are.
select template_hash, count(*) as n_verdicts
from verdicts as before
where benchmark = $benchmark
    and dataset_revision = $dataset_revision
    and judge = $judge
    and judge_config_hash = $judge_config_hash
    and grading = $grading
    and judge_trial = $judge_trial
    and source = 'judged'
    and value is not null
    and template_hash <> $template_hash
    and not exists (
        select 1
        from verdicts as now
        where now.response_id = before.response_id
            and now.criterion_id = before.criterion_id
            and now.criterion_hash = before.criterion_hash
            and now.judge = before.judge
            and now.judge_config_hash = before.judge_config_hash
            and now.grading = before.grading
            and now.judge_trial = before.judge_trial
            and now.template_hash = $template_hash
            and now.value is not null
    )
group by template_hash
order by n_verdicts desc, template_hash
limit 1
