-- True if a grader is shown as a judge: a named one; if none is named, everyone
-- except people who label a revision that a judge has judged.
create macro counts_as_judge(named, of_benchmark, of_revision, grader, config_hash) as
case
    when len(named::varchar[]) > 0 then list_contains(named::varchar[], grader)
    else (of_benchmark, of_revision, grader, config_hash) not in (
        select (benchmark, dataset_revision, judge, judge_config_hash)
        from intermediate.people_who_label
    )
end
