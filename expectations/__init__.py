"""Data quality with Great Expectations: the expectations after each stage, and the runner."""
