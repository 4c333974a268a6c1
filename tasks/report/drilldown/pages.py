"""The pages of the drill-down: all tasks, one task, all verdicts."""

from tasks.report.content.figures import Page

TASKS = Page(
    "tasks",
    "Tasks",
    "Every task with the score of each model. A task's page has its conversation, the responses, and every verdict.",
    template="tasks.html",
)
VERDICTS = Page(
    "verdicts",
    "Verdicts",
    "Every verdict on the chosen models: which judge decided what on which criterion, and which verdicts failed.",
    template="verdicts.html",
)
TASK = Page(
    "task",
    "Task",
    "The conversation, the responses, and every judge's verdicts on them.",
    template="task.html",
)
NAVIGATED = (TASKS, VERDICTS)
"""Those that stand in the navigation; a task is found by the other two, and by links."""
