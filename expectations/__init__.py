"""Data quality with Great Expectations: what is expected after which stage, and the runner."""
