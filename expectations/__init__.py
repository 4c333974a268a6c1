"""Data quality with Great Expectations: suites as code, made from rules that are declared as data."""

from expectations.docs import Checked, page_name, write_docs
from expectations.run import Failure, Finding, Outcome, Rule, described, run_suite

__all__ = [
    "Checked",
    "Failure",
    "Finding",
    "Outcome",
    "Rule",
    "described",
    "page_name",
    "run_suite",
    "write_docs",
]
