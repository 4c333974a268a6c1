-- Who decided on criteria: a judge (or people) in one of its repetitions, or the majority of several. The name tells
-- configuration, template or repetition only where one label has several.
with named as (
    select
        judgings.*,
        judge
        || if(
            count(distinct (judge_config_hash, template_hash, grading))
                over (partition by judge) > 1,
            ' [' || judge_config_hash[:6] || ' ' || template_hash[:6] || ' '
            || grading || ']',
            ''
        ) as configured
    from judgings
),

repeated as (
    select
        *,
        configured || if(judge_trial > 1, '#' || judge_trial, '') as grader
    from named
),

judges as (
    select
        judging_id as grader_id,
        if(
            count(*) over (partition by grader) > 1,
            grader || ' ' || md5(judging_id::varchar)[:6],
            grader
        ) as grader,
        if(is_imported, 'imported', 'judge') as kind,
        configured,
        judge,
        judge_trial,
        benchmarks
    from repeated
),

first_trials as (
    select grader, kind, unnest(benchmarks) as benchmark
    from judges
    where judge_trial = 1
),

majorities as (
    -- Those that the configuration names.
    select benchmark, majority as grader, members
    from grader_panels
    union all
    -- All judges of a benchmark, where there are at least three; else with those whose verdicts were imported.
    select
        benchmark,
        'majority' as grader,
        list_sort(
            if(
                count(*) filter (where kind = 'judge') >= 3,
                list(grader) filter (where kind = 'judge'),
                list(grader)
            )
        ) as members
    from first_trials
    where benchmark not in (
        select benchmark from grader_panels where majority = 'majority'
    )
    group by benchmark
    having count(*) >= 3
    union all
    -- The repetitions of one judge.
    select
        unnest(any_value(benchmarks)) as benchmark,
        configured || ' (majority of trials)' as grader,
        list_sort(list(grader)) as members
    from judges
    group by configured
    having count(*) >= 3
),

final as (
    select *, [grader] as members
    from judges
    union all by name
    select
        hash('majority', benchmark, grader) as grader_id,
        grader,
        'majority' as kind,
        null as configured,
        null as judge,
        1 as judge_trial,
        [benchmark] as benchmarks,
        members
    from majorities
)

select * from final
