"""Data quality with Great Expectations: suites as code, made from rules that are declared as data."""

from expectations.run import Failure, Finding, Rule, described, run_suite

__all__ = ["Failure", "Finding", "Rule", "described", "run_suite"]
