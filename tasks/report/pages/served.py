"""The pages that a served report has beside its files."""

from tasks.report.content.figures import Page

COMPARE = Page(
    "compare",
    "Compare",
    "Two models, nights, runs or judges, paired by task: the difference with its interval, and every verdict that "
    "changed.",
    template="compare.html",
)
"""In a folder of files it only says how to see it."""
LIVE = Page(
    "live",
    "Live",
    "The runs in progress: coverage, calls, cost, failures, and the ranking so far.",
    template="live.html",
)
