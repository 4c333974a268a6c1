"""The first stage: a data set becomes tasks and criteria."""

from tasks.ingest.ingest import ingest

__all__ = ["ingest"]
