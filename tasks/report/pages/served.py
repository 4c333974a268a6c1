"""The pages that a served report has beside its files."""

from tasks.report.content.figures import Page

COMPARE = Page(
    "compare",
    "Compare",
    "Two models, vintages (such as two nights), runs or judges, paired by task: the difference with its interval, and "
    "every verdict that changed.",
    template="compare.html",
)
"""In a folder of files the page only says how to open it."""
LIVE = Page(
    "live",
    "Live",
    "Runs in progress: coverage, calls, cost, failures, and the ranking so far.",
    template="live.html",
)
