"""What judges were sent and what they answered: the templates of prompts, and the replies that the ledger keeps.

A page fills a template itself (`assets/prompts.js`), so that a prompt needs no room. Replies are in files of their own,
since the ledger deletes old ones while the verdicts stay.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tasks.console import notice
from tasks.llm import kept_replies
from tasks.prompts import shipped_templates
from tasks.report.content.addresses import task_key
from tasks.report.content.edition import Edition
from tasks.report.drilldown.packing import as_bytes, packed, script
from tasks.report.drilldown.subjects import Subjects
from tasks.report.rendering.site import Site
from tasks.rules.errors import PipelineError
from tasks.run import LEDGER, hash_of_template, judgings

_MOST_VERDICTS = 200_000
"""Of more verdicts only the replies of those that failed are in a report: reading all takes long, and much room."""


def write_exchanges(subjects: Subjects, site: Site) -> set[str]:
    """Write the templates, and the replies task by task; the ids of the tasks with replies."""
    templates = _templates(subjects.edition)
    used = {each["template_hash"] for each in subjects.judgings}
    content = {key: text for key, text in templates.items() if key in used}
    site.write("data/templates.js", script("templates", packed(as_bytes({"templates": content}))))
    replies = _replies(subjects)
    for task_id, of_task in replies.items():
        name = f"replies-{task_key(task_id)}"
        site.write(f"data/{name}.js", script(name, packed(as_bytes(of_task))))
    return set(replies)


def _templates(edition: Edition) -> dict[str, str]:
    """The templates that are configured or shipped, by the hash that verdicts have."""
    configured = (each.template for each in judgings(edition.job, edition.benchmark))
    return {hash_of_template(text, edition.benchmark): text for text in (*shipped_templates(), *configured)}


def _replies(subjects: Subjects) -> Mapping[str, Mapping[str, str]]:
    """Task -> place of a verdict -> the judge's last reply, word for word."""
    folder = subjects.edition.job.warehouse / LEDGER
    if not folder.is_dir():
        return {}
    places = {row[-1]: row[:-1] for row in subjects.rows("drilldown/asked", most=_MOST_VERDICTS)}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for verdict_id, text in _last_texts(folder, places) if places else ():
        task_id, entry, judging, trial, position = places[verdict_id]
        found[task_id][f"{entry} {judging} {trial} {position}"] = text
    return {task_id: dict(sorted(of_task.items())) for task_id, of_task in found.items()}


def _last_texts(folder: Path, wanted: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """The last text that came for each wanted row; none where the ledger cannot be read."""
    last: dict[str, tuple[float, str]] = {}
    try:
        with kept_replies(folder) as kept:
            for reply in kept:
                if reply.cell in wanted and reply.finished_at_s >= last.get(reply.cell, (0.0, ""))[0]:
                    last[reply.cell] = (reply.finished_at_s, reply.text)
    except (PipelineError, OSError) as error:
        notice(f"the report has no replies of judges: {error}")
    return ((cell, text) for cell, (_, text) in last.items())
