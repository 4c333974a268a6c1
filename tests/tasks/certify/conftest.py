"""Certificates of the sample, of made-up warehouses and of real rows; and forgeries of them."""

import hashlib
import json
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.certify.certifying import certify
from tasks.config.job import Job
from tasks.rules.identity import piece_hash, response_id, verdict_id
from tests.tasks.aggregate.world import random_world
from tests.tasks.bundles.manifests import sealed
from tests.tasks.report.synthetic.resamples import few_resamples
from tests.tasks.report.synthetic.research import RESAMPLES

RESPONSE = (
    "benchmark",
    "dataset_revision",
    "task_id",
    "conversation_id",
    "model",
    "model_config_hash",
    "trial",
    "vintage",
)
VERDICT = (
    "criterion_id",
    "criterion_hash",
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
)
"""The columns that ids are hashes of."""
Members = dict[str, bytes]
Spoil = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="session")
def research(research_job: Job, tmp_path_factory) -> Path:
    """The certificate of a made-up warehouse of ResearchRubrics."""
    folder = tmp_path_factory.mktemp("certificates")
    return certified(research_job, folder / "research.zip")


@pytest.fixture
def resampling_less() -> Iterator[None]:
    """Verify with the few resamples of the made-up warehouse of ResearchRubrics."""
    with few_resamples(RESAMPLES):
        yield


def certified(job: Job, path: Path) -> Path:
    certify(job, path)
    return path


def members_of(path: Path) -> Members:
    """All members of a certificate by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(
    path: Path,
    target: Path,
    change: Callable[[Members], None],
    manifest: Spoil | None = None,
) -> Path:
    """A certificate with changed members and a manifest that fits them; then `manifest` may change
    the manifest.
    """
    members = members_of(path)
    document = json.loads(members.pop("manifest.json"))
    change(members)
    document["files"] = [
        {
            "name": name,
            "n_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        for name, content in members.items()
    ]
    if manifest is not None:
        manifest(document)
    return zipped({**members, "manifest.json": sealed(document)}, target)


def zipped(members: Mapping[str, bytes], target: Path) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b"0" * 64
    content = target.read_bytes()[:-64]
    target.write_bytes(content + hashlib.sha256(content).hexdigest().encode())
    return target


def with_true_ids(
    rows: dict[str, list[dict[str, Any]]], pieces: Mapping[str, Sequence[str]] = {}
):
    """Give made-up rows their true ids; `pieces` has the hashes of the criteria in the call of each
    criterion.
    """
    responses = {}
    for response in rows["responses"]:
        responses[response["response_id"]] = response
        parts = {name: response[name] for name in RESPONSE}
        response["response_id"] = response_id(**parts)
    for verdict in rows["verdicts"]:
        response = responses[verdict["response_id"]]
        verdict["response_id"] = response["response_id"]
        verdict["verdict_id"] = verdict_id(
            response_id=response["response_id"],
            response_text=response["text"],
            **{name: verdict[name] for name in VERDICT},
            piece=pieces.get(verdict["criterion_id"], ()),
        )


def grouped_rows(n_in_call: int) -> dict[str, list[dict[str, Any]]]:
    """A made-up world whose judges decide the criteria of a rubric in groups, in its order."""
    rows = random_world(seed=5, n_tasks=8)
    rubrics = defaultdict(list)
    for criterion in rows["criteria"]:
        rubrics[criterion["task_id"]].append(criterion)
    pieces = {}
    for rubric in rubrics.values():
        for position, criterion in enumerate(rubric):
            start = position - position % n_in_call
            group = rubric[start : start + n_in_call]
            pieces[criterion["criterion_id"]] = [
                criterion["content_hash"] for criterion in group
            ]
    with_true_ids(rows, pieces)
    for verdict in rows["verdicts"]:
        piece = pieces[verdict["criterion_id"]]
        verdict |= {"n_in_call": len(piece), "piece_hash": piece_hash(piece)}
    return rows


def with_row(name: str, number: int, **values: Any) -> Callable[[Members], None]:
    """A change of some values in one row of a member."""

    def change(members):
        lines = members[name].splitlines()
        lines[number] = json.dumps({**json.loads(lines[number]), **values}).encode()
        members[name] = b"\n".join(lines) + b"\n"

    return change
