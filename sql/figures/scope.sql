-- name: annotated
-- One row: a kind of label that annotators gave to tasks without one in the data
-- set, with the number of tasks that have a label of that kind.
--
-- with: revision/revision_labelled_tasks
with label_counts as (
    select kind,
        count(distinct task_id) filter (source = 'annotated') as n_annotated,
        count(distinct task_id) as n_tasks
    from revision_labelled_tasks
    group by kind
),

annotators as (
    select kind, list(distinct annotator order by annotator) as annotators
    from intermediate.annotator_labels
    where benchmark = $benchmark and dataset_revision = $dataset_revision
    group by kind
)

select
    kind,
    n_annotated,
    n_tasks,
    annotators
from label_counts
inner join annotators using (kind)
where n_annotated > 0;

-- name: entries
-- The shown model vintages: those that are current under a shown judge on a shown
-- split, and the newest of a model that no judge judged; or the requested vintage.
-- The best are first, those without a score last.
--
-- with: revision/revision_leaderboard, revision/revision_responses, figures/shared/shown_tasks
with sampled_runs as (
    select model, model_config_hash, vintage,
        row_number() over (
            partition by model, model_config_hash
            order by min(created_at) desc, vintage desc
        ) = 1 as is_newest
    from revision_responses
    semi join shown_tasks using (task_id)
    where is_among($models, model)
    group by model, model_config_hash, vintage
),

scored as (
    select model, model_config_hash, vintage,
        round(exact_avg(mean_score), 12) as mean_score
    from revision_leaderboard
    natural join $shown_judge_configs
    semi join $shown_splits using (split)
    where is_primary
        and is_judged
        and (is_latest or $vintage is not null)
    group by model, model_config_hash, vintage
),

marked as (
    select sampled_runs.*, scored.mean_score,
        scored.vintage is not null
        or (is_newest and count(scored.vintage) over of_model = 0) as is_current
    from sampled_runs
    left join scored using (model, model_config_hash, vintage)
    window of_model as (partition by model, model_config_hash)
)

select
    model,
    model_config_hash,
    vintage,
    mean_score
from marked
where $vintage = 'all'
    or vintage = $vintage
    or ($vintage is null and is_current)
order by mean_score desc nulls last, model, vintage, model_config_hash;

-- name: judge_configs
-- Every judge with its configuration, template, grading and repetition, and the
-- beginning of its label; the one with the most scored tasks is first.
--
-- with: revision/revision_leaderboard
select
    judge,
    judge_config_hash,
    template_hash,
    grading,
    judge_trial,
    judge || if(grading = 'ternary_as_binary', ' (as binary)', '') as label_start,
    sum(n_tasks) as n_tasks
from revision_leaderboard
inner join $shown_splits using (split)
where is_primary
    and counts_as_judge($judges, benchmark, dataset_revision, judge, judge_config_hash)
group by all
order by n_tasks desc, judge, judge_trial, grading, template_hash, judge_config_hash;

-- name: kinds
-- The kinds of labels of admitted tasks, or of criteria of the data set; `is_own`
-- marks kinds that only some benchmarks have, `is_category` those of them that
-- equal the category. Properties of every task (turns, reference texts) are a kind
-- only if tasks differ in them.
--
-- with: revision/revision_criteria, revision/revision_criterion_labels
with kinds as (
    select
        breakdown as kind,
        false as of_criteria,
        breakdown not in (
            'topic', 'expert', 'turns', 'reference_texts', 'decision_type', 'economic_pathway'
        ) as is_own
    from intermediate.task_breakdowns
    where benchmark = $benchmark
        and dataset_revision = $dataset_revision
        and breakdown not in ('all', 'subset')
        and label <> '(none)'
    group by breakdown
    having count(distinct label) > 1 or breakdown not in ('turns', 'reference_texts')
    union all
    select distinct 'category', true, false
    from revision_criteria
    where category is not null
    union all
    select distinct 'severity', true, false
    from revision_criteria
    where severity is not null
    union all
    select distinct kind, true, true
    from revision_criterion_labels
),

-- A kind of criteria whose labels equal the categories adds no information.
other_than_category as (
    select kind
    from revision_criterion_labels
    inner join criteria using (benchmark, dataset_revision, task_id, criterion_id)
    where label is distinct from category
)

select
    kind,
    of_criteria,
    is_own,
    of_criteria and is_own and kind not in (from other_than_category) as is_category
from kinds
order by is_own, of_criteria, kind;

-- name: left_out
-- Number of tasks of the revision that the report leaves out.
--
-- with: revision/revision_split_members, figures/shared/shown_tasks
select count(distinct task_id) as n_tasks
from revision_split_members
anti join shown_tasks using (task_id);

-- name: selections
-- The own hard selections that the report shows, with their names on leaderboards
-- (as in `task_set_members`): the latest of each field, if the report includes
-- all its tasks and candidates.
--
-- with: revision/revision_hard_stability, revision/revision_hard_subset,
--     figures/shared/shown_tasks
with considered as (
    select selection_id, field, task_id
    from revision_hard_subset
    inner join intermediate.latest_selections
        using (benchmark, dataset_revision, field, selection_id)
    union
    select selection_id, field, task_id
    from revision_hard_stability
    semi join intermediate.latest_selections using (selection_id)
)

select
    considered.selection_id,
    considered.field || ' (own hard)' as split
from considered
left join shown_tasks using (task_id)
group by all
having count(*) = count(shown_tasks.task_id)
order by split;

-- name: splits
-- The splits of the report: the requested ones, or all.
--
-- with: revision/revision_split_members
select distinct
    split,
    list_contains($hard_splits, split) as is_hard
from revision_split_members
where is_among($splits, split)
order by split;
