-- The verdicts that judges were asked for, with their places; of too many only
-- those that failed.
-- begins with: shown_verdicts
select
    task_id,
    entry,
    judging,
    trial,
    position,
    verdict_id
from shown_verdicts
where
    source <> 'imported'
    and grading <> 'ternary_as_binary'
    and (
        status not in ('met', 'partial', 'unmet')
        or (select count(*) from verdicts) <= $most
    )
