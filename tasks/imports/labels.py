"""What an import of people's verdicts says about them: whose they are, and how they were sampled."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sql
from tasks.config.job import Job
from tasks.imports.files import ImportRefused
from tasks.rules.identity import digest
from warehouse import Reader

Row = dict[str, Any]


def labeller_rows(reader: Reader, batch: str, rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows of `labellers` that are not stored yet, for people whose verdicts are labels."""
    found = {(row["benchmark"], row["judge"]) for row in rows}
    query = "select benchmark, judge from labellers where import_batch = ?"
    stored = {tuple(row.values()) for row in reader.rows(query, [batch])}
    now = datetime.now(UTC)
    return [
        {"benchmark": benchmark, "judge": judge, "import_batch": batch, "created_at": now}
        for benchmark, judge in sorted(found - stored)
    ]


def refuse_drawn(reader: Reader, file: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse the statement that a drawn sheet is a simple random sample: its probabilities are stored.

    Raises:
        ImportRefused: every row was drawn by one sheet.
    """
    if rows and _are_of_a_sheet(reader, rows):
        raise ImportRefused(
            f"{file}: `prbench export labelling --for` drew these rows, and their probabilities are stored; leave "
            "--random-sample out"
        )


def people_in_drawn_rows(job: Job, reader: Reader, batch: str, rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Who decided only what one sheet drew: people who filled it in, unless known as a judge."""
    query = sql.read("questions/imports/judges")
    judges = {row["judge"] for row in reader.rows(query, {"benchmark": job.settings.benchmark, "batch": batch})}
    judges |= {judge.label for judge in job.settings.judges}
    of_judge: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        of_judge[row["judge"]].append(row)
    return {judge for judge, own in of_judge.items() if judge not in judges and _are_of_a_sheet(reader, own)}


def _are_of_a_sheet(reader: Reader, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one sheet drew all of these verdicts."""
    cells = {(row["response_id"], row["criterion_id"], row["criterion_hash"]) for row in rows}
    drawn: dict[str, set[tuple[Any, ...]]] = defaultdict(set)
    for row in reader.rows(sql.read("questions/imports/drawn_verdicts"), {"responses": sorted({c[0] for c in cells})}):
        drawn[row.pop("sheet_id")].add(tuple(row.values()))
    return any(cells <= of_sheet for of_sheet in drawn.values())


def stated_sample_rows(
    job: Job, reader: Reader, batch: str, rows: Iterable[Mapping[str, Any]]
) -> tuple[list[Row], list[Row]]:
    """The rows of `label_sheets` and `label_draws` that state: these are a simple random sample.

    Of each model in one vintage: the labelled verdicts are so many of all on its usable answers to admitted tasks.
    """
    of_model: dict[tuple[str, ...], dict[tuple[str, str, str], Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        key = tuple(row[name] for name in ("benchmark", "dataset_revision", "model", "vintage"))
        of_model[key][row["response_id"], row["criterion_id"], row["criterion_hash"]] = row
    sheets, draws = [], []
    for key, cells in sorted(of_model.items()):
        benchmark, revision, model, vintage = key
        given = {"benchmark": benchmark, "revision": revision, "model": model, "vintage": vintage}
        answers = reader.rows(sql.read("questions/imports/answers_of_model"), given)
        n_population = sum(row["n_criteria"] for row in answers)
        named = {"benchmark": benchmark, "dataset_revision": revision, "sheet_id": digest("stated sample", batch, *key)}
        sheets.append({
            **named, "design": f"stated to be a simple random sample of {len(cells)} of {n_population} verdicts on "
            f"{model} in vintage {vintage}",
            "covered_breakdown": "all", "covered_label": "", "n_population": n_population, "n_drawn": len(cells),
            "covered_responses": [row["response_id"] for row in answers], "seed": None, "import_batch": batch,
            "run_id": job.run_id, "created_at": datetime.now(UTC),
        })  # fmt: skip
        draws += [
            {**named, "task_id": row["task_id"], "response_id": cell[0], "criterion_id": cell[1],
             "criterion_hash": cell[2], "probability": min(1.0, len(cells) / n_population), "is_known": False}
            for cell, row in sorted(cells.items())
        ]  # fmt: skip
    return sheets, draws
