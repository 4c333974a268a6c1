"""The pages of the drill-down, and its writing: data first, so that a page that is there finds what it loads."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.figures.figure import Page
from tasks.figures.scope import Scope
from tasks.report.drilldown.blocks import write_blocks
from tasks.report.drilldown.lists import tasks_of, write_lists
from tasks.report.drilldown.subjects import subjects_of
from tasks.report.rendering.site import Site, render

TASKS = Page(
    "tasks",
    "Tasks",
    "Every task with the score of each model. A task's page has its conversation, the responses, and every verdict.",
    template="list.html",
)
VERDICTS = Page(
    "verdicts",
    "Verdicts",
    "Every verdict on the chosen models: which judge decided what on which criterion, and which verdicts failed.",
    template="list.html",
)
TASK = Page(
    "task", "Task", "The conversation, the responses, and every judge's verdicts on them.", template="task.html"
)
NAVIGATED = (TASKS, VERDICTS)
"""Those that stand in the navigation; a task is found by the other two, and by links."""


def write_drilldown(
    scope: Scope, site: Site, common: Mapping[str, Any], also: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Write the tasks, their answers and verdicts, and the pages that show them; what did not change is kept.

    Args:
        scope: whose entries and judgings are shown.
        site: where to.
        common: what every page says.
        also: earlier samplings that can be compared with (`model`, `model_config_hash`, `vintage`, and a label
            `entry`); those of the scope itself are left out.
    """
    subjects = subjects_of(scope, also)
    write_lists(subjects, tasks_of(subjects), site, write_blocks(subjects, site))
    for page in (TASK, TASKS, VERDICTS):
        site.write(f"{page.name}.html", render(page.template, report=common, page=page, title=page.title))
