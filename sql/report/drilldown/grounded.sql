-- Whether any verdict rests on more than the criterion's own words and the
-- whole answer.
select
    exists(
        from evidence
        where benchmark = $benchmark and dataset_revision = $revision
    )
    or exists(
        from criterion_variants
        where benchmark = $benchmark and dataset_revision = $revision
    ) as is_grounded
