-- Whether any verdict rests on more than the criterion's own words, the whole
-- answer and one judge.
select
    exists(from evidence where benchmark = $benchmark and dataset_revision = $revision)
    or exists(from criterion_variants where benchmark = $benchmark and dataset_revision = $revision)
    or exists(
        from verdicts
        where benchmark = $benchmark and dataset_revision = $revision and decided_by is not null
    ) as is_grounded
