"""Data quality with Great Expectations: suites as code, made from rules that are declared as data."""

from expectations.run import Finding, Rule, run_suite

__all__ = ["Finding", "Rule", "run_suite"]
