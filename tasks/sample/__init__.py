"""The stage that samples responses."""

from tasks.sample.sample import Cell, plan_samples, sample_cells

__all__ = ["Cell", "plan_samples", "sample_cells"]
