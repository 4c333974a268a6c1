-- name: votes
-- One row: a criterion of a response that all members of a panel were asked about, and at least
-- one decided, with their votes (NULL for a failure), and what the panel decided before. A panel's
-- decision stands; only what it left undecided is counted again.
--
-- with: queries/run/judge_verdicts
with members as (
    select unnest(
        $members::struct(
            judge varchar,
            judge_config_hash varchar,
            template_hash varchar,
            grading varchar,
            judge_trial bigint
        )[],
        recursive := true
    )
),

votes as (
    select response_id, task_id, model, trial, vintage, criterion_id, criterion_hash,
        list(value) as votes,
        sum(cost_usd) as known_usd,
        if(count(cost_usd) = count(*), known_usd, null) as members_usd
    from intermediate.graded_verdicts
    inner join members using (judge, judge_config_hash, template_hash, grading, judge_trial)
    where benchmark = $benchmark and dataset_revision = $dataset_revision
    group by all
    having count(*) = len($members) and count(value) > 0
)

select
    votes.response_id,
    votes.task_id,
    votes.model,
    votes.trial,
    votes.vintage,
    votes.criterion_id,
    votes.criterion_hash,
    votes.votes,
    votes.members_usd,
    earlier.response_id is not null as is_counted
from votes
left join judge_verdicts as earlier using (response_id, criterion_id, criterion_hash)
where earlier.value is null
order by votes.task_id, votes.response_id, votes.criterion_id;
