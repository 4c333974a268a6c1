"""Review: models check how each criterion of a rubric is written."""

from tasks.review.review import REVIEW, refuse_unready

__all__ = ["REVIEW", "refuse_unready"]
