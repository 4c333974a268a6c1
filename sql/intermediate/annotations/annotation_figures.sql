-- One row: a label, or an average over labels, of two sources of labels, with a
-- fingerprint of their labels of the tasks that both labelled.
--
-- built as: view
-- depends on: intermediate.annotation_values
with compared as (
    select benchmark, dataset_revision, kind, annotator, compared_with, comparison_id,
        count(distinct task_id) as n_tasks,
        list(distinct label) as labels,
        bit_xor(hash(task_id, label, is_annotated, is_compared))::varchar as basis
    from intermediate.annotation_values
    group by all
)

select
    benchmark,
    dataset_revision,
    kind,
    annotator,
    compared_with,
    comparison_id,
    n_tasks,
    basis,
    unnest(labels || ['(micro average)', '(macro average)', '(mean over tasks)']) as label,
    left(sha256(to_json([
        'label agreement', benchmark, dataset_revision, kind, annotator, compared_with, label
    ])::varchar), 32) as figure_id
from compared
