"""Review: models check how each criterion of a rubric is written."""

from tasks.review.review import REVIEW

__all__ = ["REVIEW"]
