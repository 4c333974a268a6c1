"""Data quality with Great Expectations: what is expected after which stage, and the runner."""

from expectations.expectation import SUITES, Expectation
from expectations.ingest import ingest_suite
from expectations.run import Failure, Finding, run_suite
from expectations.suites import all_expectations

__all__ = ["SUITES", "Expectation", "Failure", "Finding", "all_expectations", "ingest_suite", "run_suite"]
