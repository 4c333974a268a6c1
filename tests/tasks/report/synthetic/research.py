"""A second benchmark in a made-up warehouse: ResearchRubrics with reports of three models, and a
little PRBench.

Twelve tasks in three domains. Two judges and, on a third of the tasks, a person grade in ternary;
one model is called, the reports of the two others were imported.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.benchmarks.researchrubrics import AXES, BENCHMARK, LEVELS
from tasks.config.job import Job
from tasks.hard_subset.select import select_hard
from tasks.ingest import ingest
from tasks.rules.identity import BASE_VINTAGE, IMPORTED, response_id, verdict_id
from tasks.rules.records import Criterion, Task
from tasks.rules.text.characters import count_alphanumeric
from tasks.run.judge_configs import judge_configs, model_hash
from tests.kit import Row, Rows, at, endpoint, job_on, row, write_jsonl, written
from tests.tasks.report.drilldown.drilled import tiny_job
from tests.tasks.report.synthetic.resamples import few_resamples

DOMAINS = ("AI & Machine Learning", "Consumer Research", "History")
SUBJECTS = (
    "heat pumps in old houses",
    "the trade of amber",
    "small language models",
    "a week in Tallinn",
)
MODELS = {
    "delve-1": 0.75,
    "quarry-pro": 0.6,
    "sift-mini": 0.35,
}
"""Model -> share of criteria that it meets; the first one is called, the reports of the others were
imported.
"""
JUDGES = {"careful": 0.08, "lenient": 0.2}
"""Judge -> share of its decisions that are one step too high."""
PERSON = "historian"
VALUES = {
    "met": 1.0,
    "partial": 0.5,
    "unmet": 0.0,
}
_STEPS = tuple(VALUES)
_WEIGHTS = (5, 4, 4, 3, 3, 2, 1, 1, -2, -4)
_N_TASKS = 12
RESAMPLES = 200


def research_row(number: int) -> Row:
    """A row in the hub's shape."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    levels = {kind: sorted(labels)[number % 3] for kind, labels in LEVELS.items()}
    axes = sorted(AXES)
    rubrics = [
        {
            "criterion": _criterion(subject, n, weight < 0),
            "weight": weight,
            "axis": axes[n % len(axes)],
        }
        for n, weight in enumerate(_WEIGHTS * 2)
    ]
    prompt = (
        f"Write a report on {subject} for somebody who has to decide something about it (case"
        f" {number})."
    )
    return {
        "sample_id": f"report-{number:02}",
        "prompt": prompt,
        "domain": DOMAINS[number % 3],
        "rubrics": rubrics,
        **levels,
    }


def _criterion(subject: str, number: int, is_mistake: bool) -> str:
    if is_mistake:
        return f"Claims something about {subject} that point {number} of the sources contradicts."
    return (
        f"Explains point {number} about {subject} and names the source that it rests on (e.g., a"
        " study)."
    )


def research_job(folder: Path) -> Job:
    """Build the warehouse of both benchmarks in a folder; the job is that of ResearchRubrics."""
    warehouse = tiny_job(folder).warehouse
    rows = [research_row(number) for number in range(_N_TASKS)]
    called_model, *_ = MODELS
    address = "http://127.0.0.1:9/v1"
    price = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 4.0}
    job = job_on(
        write_jsonl(folder / "research.jsonl", rows),
        warehouse,
        benchmark=BENCHMARK.name,
        models=[endpoint(called_model, address, price=price)],
        judges=[endpoint(judge, address, price=price) for judge in JUDGES],
        hard_subset={"share": 0.5, "min_coverage": 0.8},
    )
    written(warehouse, _written(job, list(map(BENCHMARK.parse_row, rows))))
    ingest(job)
    assemble(job)
    with few_resamples(RESAMPLES):
        select_hard(job, must_select=False)
        aggregate(job)
    return job


def _written(job: Job, tasks: list[Task]) -> Rows:
    """The rows of the reports, the verdicts on them, and the check that admits the tasks, by
    table.
    """
    key = {"benchmark": BENCHMARK.name, "dataset_revision": job.data.revision}
    check = row(
        "checks",
        suite="ingest",
        check_name="any",
        expectation="any",
        table_name="rubrics",
        n_evaluated=len(tasks),
        n_failed=0,
        success=True,
        severity="quarantine",
        **key,
    )
    tables = {
        "checks": [check],
        "responses": [],
        "verdicts": [],
    }
    judges = [config.columns for config in judge_configs(job, BENCHMARK)]
    for model in MODELS:
        for number, task in enumerate(tasks):
            report = _report(job, key, model, number, task)
            tables["responses"].append(report)
            graders = [*judges, _PERSON] if number % 3 == 0 else judges
            for grader in graders:
                tables["verdicts"] += _decided(key, report, task, grader)
    return tables


_PERSON = {
    "judge": PERSON,
    "judge_config_hash": IMPORTED,
    "template_hash": IMPORTED,
    "grading": "ternary",
    "judge_trial": 1,
}


def _report(job: Job, key: Row, model: str, number: int, task: Task) -> Row:
    hashes = {model.label: model_hash(model) for model in job.settings.models}
    text = (
        f"# {model} on {task.conversation[0].prompt}\n\n"
        + "A paragraph with *evidence*. " * (5 + 3 * number)
    )
    is_import = model not in hashes
    tables = (
        {}
        if is_import
        else {
            "prompt_tokens": 60,
            "completion_tokens": 400,
            "cost_usd": 0.02,
            "latency_s": 80.0,
        }
    )
    config_hash = hashes.get(model, IMPORTED)
    identity = response_id(
        benchmark=key["benchmark"],
        dataset_revision=key["dataset_revision"],
        task_id=task.task_id,
        conversation_id=task.conversation_id,
        model=model,
        model_config_hash=config_hash,
        trial=1,
        vintage=BASE_VINTAGE,
    )
    return row(
        "responses",
        response_id=identity,
        task_id=task.task_id,
        model=model,
        status="ok",
        text=text,
        conversation_id=task.conversation_id,
        chars_alnum=count_alphanumeric(text),
        degraded=False,
        model_config_hash=config_hash,
        source="imported" if is_import else "sampled",
        created_at=at(number),
        **key,
        **tables,
    )


def _decided(key: Row, report: Row, task: Task, judge_config: Row) -> Iterator[Row]:
    cost = (
        {}
        if judge_config is _PERSON
        else {
            "cost_usd": 0.001,
            "prompt_tokens": 900,
            "completion_tokens": 40,
        }
    )
    for criterion in task.criteria:
        step = _step(report["model"], criterion, judge_config["judge"], task.task_id)
        identity = verdict_id(
            response_id=report["response_id"],
            response_text=report["text"],
            criterion_id=criterion.criterion_id,
            criterion_hash=criterion.content_hash,
            **{name: judge_config[name] for name in _PERSON},
        )
        yield row(
            "verdicts",
            verdict_id=identity,
            response_id=report["response_id"],
            task_id=task.task_id,
            model=report["model"],
            status=_STEPS[step],
            value=VALUES[_STEPS[step]],
            criterion_id=criterion.criterion_id,
            criterion_hash=criterion.content_hash,
            explanation=(
                f"The report {('does so', 'does so in part', 'does not')[step]}, says"
                f" {judge_config['judge']}."
            ),
            source="imported" if judge_config is _PERSON else "judged",
            created_at=report["created_at"],
            **key,
            **judge_config,
            **cost,
        )


def _step(model: str, criterion: Criterion, judge: str, task_id: str) -> int:
    """The index in `_STEPS` of a judge's decision; the truth behind it is the same for all
    judges.
    """
    cell = f"{model} {task_id} {criterion.position}"
    truth_dice = random.Random(cell)
    judge_dice = random.Random(f"{judge} {cell}")
    share = MODELS[model] if (criterion.weight or 0) > 0 else 1 - MODELS[model]
    step = 0 if truth_dice.random() < share else truth_dice.choice((1, 2))
    is_mild = judge_dice.random() < JUDGES.get(judge, 0.0)
    return max(0, step - 1) if is_mild else step
