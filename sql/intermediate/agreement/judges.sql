-- One row: a judge (or people) that decided on criteria of a benchmark, in one
-- repetition.
--
-- The name includes configuration, template or repetition only if one label has
-- several of them.
--
-- depends on: intermediate.judge_configs, intermediate.model_runs
with deciding as (
    select judging_id, benchmark,
        list_sort(list(distinct hash(benchmark, dataset_revision))) as revision_ids
    from intermediate.model_runs
    group by judging_id, benchmark
),

named as (
    select judge_configs.*, deciding.benchmark, deciding.revision_ids,
        if(grading = 'ternary_as_binary', 'ternary', grading) as requested_grading,
        judge
        || if(
            count(distinct row(judge_config_hash, template_hash, requested_grading))
                over (partition by benchmark, judge) > 1,
            ' [' || judge_config_hash[:6] || ' ' || template_hash[:6] || ' '
            || requested_grading || ']',
            ''
        ) || if(grading = 'ternary_as_binary', ' (as binary)', '') as configured,
        configured || if(judge_trial > 1, '#' || judge_trial, '') as repeated
    from intermediate.judge_configs
    inner join deciding using (judging_id)
)

select
    judging_id as grader_id,
    if(
        count(*) over (partition by benchmark, repeated) > 1,
        repeated || ' ' || md5(judging_id::varchar)[:6],
        repeated
    ) as grader,
    if(is_imported, 'imported', 'judge') as kind,
    configured,
    judge,
    judge_trial,
    rubric,
    grading,
    benchmark,
    revision_ids,
    -- A binary reading of ternary verdicts votes as the judge that gave them.
    replace(grader, ' (as binary)', '') as voice,
    -- All graders of a benchmark are compared on the original rubric, with
    -- binary grading unless all of them are ternary.
    judge_trial = 1
    and rubric = 'original'
    and coalesce(
        (grading = 'ternary') = bool_and(grading = 'ternary') filter (
            judge_trial = 1 and rubric = 'original' and grading <> 'ternary_as_binary'
        ) over (partition by benchmark),
        false
    ) as has_voice
from named
