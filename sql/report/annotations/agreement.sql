-- How far an annotator agrees with the released labels, or two annotators with
-- each other: on each label, or on average.
select kind, annotator, compared_with,
    annotator || ' with ' || compared_with as comparison,
    label, n_tasks,
    n_tasks < 50 as is_small,
    n_annotated, n_compared_with, n_both, precision, precision_ci_low, precision_ci_high, recall,
    recall_ci_low, recall_ci_high, f1, f1_ci_low, f1_ci_high, jaccard, jaccard_ci_low,
    jaccard_ci_high
from annotation_agreement
where benchmark = $benchmark
    and dataset_revision = $revision
    and starts_with(label, '(') = $is_average
    and n_annotated + n_compared_with > 0
order by kind, compared_with <> 'released', annotator, compared_with, label
