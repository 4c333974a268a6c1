-- Steps that queries include by name (`-- with:` in their headers): the rows of a relation on
-- the data-set revision.

-- name: revision_capability_members
from capability_members
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_conversation_turns
from conversation_turns
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_criteria
from criteria
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_criterion_labels
from criterion_labels
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_current_reviews
from intermediate.current_reviews
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_graded_verdicts
from intermediate.graded_verdicts
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_hard_stability
from hard_stability
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_hard_subset
from hard_subset
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_judge_drift
from judge_drift
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_labelled_tasks
from labelled_tasks
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_leaderboard
from leaderboard
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_responses
from responses
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_split_members
from split_members
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_tasks
from tasks
where benchmark = $benchmark and dataset_revision = $dataset_revision;

-- name: revision_verdicts
from verdicts
where benchmark = $benchmark and dataset_revision = $dataset_revision;
