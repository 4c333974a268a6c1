"""The data set of the made-up warehouse as files, and a job for it."""

import random
from dataclasses import dataclass
from pathlib import Path

from tasks.benchmarks.prbench import BENCHMARK
from tasks.config.job import Job
from tests.kit import job_on, write_jsonl
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.contenders import (
    CONTENDERS,
    JUDGES,
    NIGHTS,
    difficulty,
    run_of,
)
from tests.tasks.report.synthetic.operations import N_CONTROL
from tests.tasks.report.synthetic.results import PosedTask
from tests.tasks.report.synthetic.texts import MATTERS, hub_task

N_TASKS = sum(matter.n_tasks for matter in MATTERS)
_REFUSED = N_TASKS
_REFUSED_CRITERIA = 7
"""Number of the task with too few criteria."""
_JUDGE_PRICES = (1.1, 0.4)


@dataclass(frozen=True)
class Names:
    """The names in a world: name in `contenders.py` -> label, and night -> vintage."""

    labels: dict[str, str]
    nights: dict[str, str]


def write_data(folder: Path, taint: Taint, step: int = 1) -> list[PosedTask]:
    """Write the splits with every `step`-th task; return the tasks in order, the one that will be
    refused last.
    """
    folder.mkdir(parents=True)
    topics = {matter.topic: taint(matter.topic) for matter in MATTERS}
    matters = [matter for matter in MATTERS for _ in range(matter.n_tasks)] + [
        MATTERS[0]
    ]
    posed_tasks = []
    rows = {}
    for number, matter in list(enumerate(matters))[::step]:
        task_id = taint(f"{matter.field.lower()}-{number:02}")
        row = hub_task(
            matter,
            task_id,
            number,
            taint,
            _REFUSED_CRITERIA if number == _REFUSED else None,
        )
        rows[number] = row | {"topic": topics[matter.topic]}
        posed_tasks.append(
            PosedTask(number, matter, BENCHMARK.parse_row(rows[number]))
        )
    for field in ("Finance", "Legal"):
        numbers = [
            posed.number for posed in posed_tasks if posed.matter.field == field
        ]
        write_jsonl(
            folder / f"{field.lower()}.jsonl", [rows[number] for number in numbers]
        )
        write_jsonl(
            folder / f"{field.lower()}_hard.jsonl",
            [rows[number] for number in _hardest(numbers)],
        )
    return posed_tasks


def _hardest(numbers: list[int]) -> list[int]:
    """The harder half of the tasks, with some mistakes."""
    taken = {
        number: difficulty(number) + random.Random(f"hard {number}").gauss(0, 0.4)
        for number in numbers
    }
    whole = [number for number in numbers if number != _REFUSED]
    return sorted(sorted(whole, key=lambda number: -taken[number])[: len(whole) // 2])


def job_for(data: Path, warehouse: Path, names: Names) -> Job:
    """The job of the last night; nothing listens at the addresses of its models."""
    models = [
        {**contender.settings, "label": names.labels[contender.label]}
        for contender in CONTENDERS
    ]
    judges = [
        {
            "name": f"hosted_vllm/{judge}",
            "label": names.labels[judge],
            "api_base": "http://127.0.0.1:9/v1",
            "price": {"input_usd_per_mtok": price, "output_usd_per_mtok": 4 * price},
        }
        for judge, price in zip(JUDGES, _JUDGE_PRICES, strict=True)
    ]
    alder, birch, cedar = (
        names.labels[contender.label] for contender in CONTENDERS[:3]
    )
    elm, fir = (
        names.labels[contender.label]
        for contender in CONTENDERS
        if contender.is_nightly
    )
    as_one = {
        "without": birch,
        f"search {alder}": alder,
        "code": cedar,
    }
    conditions = {
        f"{alder} as one": as_one,
        "nightly": {"slow": fir, "baseline": elm},
    }
    return job_on(
        data,
        warehouse,
        run_id=run_of(NIGHTS[-1]),
        models=models,
        judges=judges,
        trials=2,
        conditions=conditions,
        drift={"verdicts": N_CONTROL, "min_agreement": 0.8},
        hard_subset={"share": 0.5, "min_coverage": 0.8},
    )
