-- One row: a model run with the content that its stored points and scores were computed
-- from.
--
-- built as: memory
-- depends on: temp.run_contents
select
    model_run_id,
    content
from temp.run_contents
