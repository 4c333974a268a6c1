-- Every response of a revision. A text of white space alone has no first
-- visible character.
select
    response_id as key,
    status,
    left(text, 1) as first_character,
    coalesce(regexp_extract(text, '[^\s\pZ\x0b\x0c\x1c-\x1f\x85]'), '') as first_visible
from responses
where benchmark = $benchmark and dataset_revision = $revision
order by response_id
