"""The pages of the drill-down: all tasks, one task, all verdicts."""

from tasks.report.content.figures import Page

TASKS = Page(
    "tasks",
    "Tasks",
    "Every task with the score of each model. A task opens with its conversation, the answers, and every verdict.",
    template="tasks.html",
)
VERDICTS = Page(
    "verdicts",
    "Verdicts",
    "Every verdict of the chosen models: who decided what on which criterion, and which could not be decided.",
    template="verdicts.html",
)
TASK = Page(
    "task",
    "Task",
    "What was asked, what was answered, and what every judge decided on it.",
    template="task.html",
)
NAVIGATED = (TASKS, VERDICTS)
"""Those that stand in the navigation; a task is found by the other two, and by links."""
