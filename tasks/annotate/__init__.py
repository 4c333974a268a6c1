"""Annotation: labels of tasks by a model, and how far they agree with released labels and with each other."""

from tasks.annotate.agreement import has_unmeasured, measure_annotations
from tasks.annotate.annotate import ANNOTATION, refuse_unready

__all__ = ["ANNOTATION", "has_unmeasured", "measure_annotations", "refuse_unready"]
