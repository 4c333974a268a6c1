-- Who decided on criteria of a benchmark: a judge (or people) in one of its
-- repetitions, or the majority of several. The name tells configuration,
-- template or repetition only where one label has several there.
--
-- built as: table
-- depends on: staging.judgings, temp.decided_points, grader_panels, responses
with deciding as (
    select
        decided_points.judging_id,
        responses.benchmark,
        list_sort(
            list(distinct hash(responses.benchmark, responses.dataset_revision))
        ) as revision_ids
    from temp.decided_points
    inner join responses using (response_id)
    where decided_points.breakdown = 'all'
    group by decided_points.judging_id, responses.benchmark
),

named as (
    select
        judgings.*,
        deciding.benchmark,
        deciding.revision_ids,
        judge
        || if(
            count(distinct (judge_config_hash, template_hash, asked_grading))
                over (partition by benchmark, judge) > 1,
            ' [' || judge_config_hash[:6] || ' ' || template_hash[:6] || ' '
            || asked_grading || ']',
            ''
        )
        || if(grading = 'ternary_as_binary', ' (as binary)', '') as configured
    from (
        select
            *,
            if(grading = 'ternary_as_binary', 'ternary', grading)
                as asked_grading
        from staging.judgings
    ) as judgings
    inner join deciding using (judging_id)
),

repeated as (
    select
        *,
        configured || if(judge_trial > 1, '#' || judge_trial, '') as grader
    from named
),

identified as (
    select
        judging_id as grader_id,
        if(
            count(*) over (partition by benchmark, grader) > 1,
            grader || ' ' || md5(judging_id::varchar)[:6],
            grader
        ) as grader,
        if(is_imported, 'imported', 'judge') as kind,
        configured,
        judge,
        judge_trial,
        rubric,
        grading,
        benchmark,
        revision_ids
    from repeated
),

judges as (
    select
        *,
        -- A reading of verdicts has the voice that gave them.
        replace(grader, ' (as binary)', '') as voice,
        -- All graders of a benchmark are held against each other in the rubric's own words, and in two steps unless
        -- all of them were asked for three.
        judge_trial = 1
        and rubric = 'original'
        and coalesce(
            (grading = 'ternary') = bool_and(grading = 'ternary') filter (
                judge_trial = 1
                and rubric = 'original'
                and grading <> 'ternary_as_binary'
            ) over (partition by benchmark),
            false
        ) as has_voice
    from identified
),

majorities as (
    -- Those that the configuration names.
    select
        grader_panels.benchmark,
        hash('configured', grader_panels.benchmark, majority) as grader_id,
        majority as grader,
        list_transform(
            any_value(members), lambda m: replace(m, ' (as binary)', '')
        ) as members,
        list_sort(list_distinct(flatten(list(revision_ids)))) as revision_ids,
        if(bool_and(grading = 'ternary'), 'ternary', 'binary') as grading
    from grader_panels
    left join judges
        on
            grader_panels.benchmark = judges.benchmark
            and list_contains(members, judges.grader)
    group by grader_panels.benchmark, majority
    union all
    -- All judges of a data-set revision, where there are at least three; else with those whose verdicts were imported.
    select
        benchmark,
        hash('majority', revision_id) as grader_id,
        'majority' as grader,
        list_sort(
            if(
                count(*) filter (where kind = 'judge') >= 3,
                list(voice) filter (where kind = 'judge'),
                list(voice)
            )
        ) as members,
        [revision_id] as revision_ids,
        if(bool_and(grading = 'ternary'), 'ternary', 'binary') as grading
    from (select *, unnest(revision_ids) as revision_id from judges)
    where
        has_voice
        and (benchmark, 'majority') not in (
            select (benchmark, majority) from grader_panels
        )
        and (benchmark, 'majority') not in (
            select (benchmark, grader) from judges
        )
    group by benchmark, revision_id
    having count(*) >= 3
    union all
    -- The repetitions of one judge.
    select
        benchmark,
        hash('trials', benchmark, configured) as grader_id,
        configured || ' (majority of trials)' as grader,
        list_sort(list(voice)) as members,
        list_sort(list_distinct(flatten(list(revision_ids)))) as revision_ids,
        any_value(grading) as grading
    from judges
    group by benchmark, configured
    having count(*) >= 3
),

final as (
    select *, [voice] as members
    from judges
    union all by name
    select *, 'majority' as kind, 1 as judge_trial, false as has_voice
    from majorities
)

select * from final
