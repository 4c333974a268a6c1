-- One row: a verdict on an answer and by a judging that are shown, on a
-- criterion as it stands today, in one of the ways it can be read.
-- begins with: judgings, shown_answers
select judgings.judging, shown_answers.entry, shown_answers.is_older, criteria.position, verdicts.*
from staging.graded_verdicts as verdicts
inner join shown_answers using (response_id)
inner join judgings using (judge, judge_config_hash, template_hash, grading, judge_trial)
inner join criteria
    on verdicts.benchmark = criteria.benchmark
        and verdicts.dataset_revision = criteria.dataset_revision
        and verdicts.task_id = criteria.task_id
        and verdicts.criterion_id = criteria.criterion_id
        and verdicts.criterion_hash = criteria.content_hash
where verdicts.benchmark = $benchmark and verdicts.dataset_revision = $revision
