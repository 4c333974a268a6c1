-- How far reviewers of the same criteria agree, check by check.
select *
from reviewer_agreement
where benchmark = $benchmark and dataset_revision = $revision
order by
    review_check <> 'agree',
    review_check,
    reviewer_b is not null,
    reviewer_a,
    reviewer_b
