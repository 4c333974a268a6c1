"""What judging under another template means for verdicts that are there: they stay, and all is judged again."""

import asyncio

import sql
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.prompts import FOLDER, load_template
from tasks.rules.conversation import missing_places
from tasks.run.judgings import Judging, hash_of_template, judgings
from tasks.run.missing_work import WantedTasks, wanted_tasks
from warehouse import Reader, Warehouse


def judged_before(reader: Reader, wanted: WantedTasks, judging: Judging) -> str:
    """What a judging makes again because its verdicts are under another template, in a line; empty if nothing."""
    found = reader.rows(sql.read("questions/plan/decided_before"), {**wanted.key, **judging.columns})
    if not found:
        return ""
    name = _names(wanted.benchmark).get(found[0]["template_hash"])
    which = f"template {name} (`template: {name}` goes on with it)" if name else "another template"
    return f"{found[0]['n_verdicts']} verdicts were made with {which}; they are kept together with the new ones"


async def former_template_notices(job: Job) -> list[str]:
    """A line for each judge whose verdicts are made again because its template is another one."""

    def lines() -> list[str]:
        with Warehouse(job.warehouse).reader() as reader:
            wanted = wanted_tasks(job, reader)
            notices = {
                judging.judge.label: judged_before(reader, wanted, judging)
                for judging in judgings(job, wanted.benchmark)
                if judging.judge_trial == 1
            }
        return [f"{label}: {line}" for label, line in notices.items() if line]

    return await asyncio.to_thread(lines)


def _names(benchmark: Benchmark) -> dict[str, str]:
    """The judge templates that ship, by what they are identified by."""
    found = {}
    for path in sorted(FOLDER.glob("*.txt")):
        if not missing_places(path.read_text(encoding="utf-8")):
            text = load_template(path.stem, path.stem)
            found[hash_of_template(text, benchmark)] = path.stem
    return found
