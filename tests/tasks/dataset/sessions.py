"""What the tests ask of the hub boundary, one process for each state of the network."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.tasks.benchmarks.research import research_row
from tests.tasks.dataset.rows import hub_row
from tests.tasks.dataset.server import (
    BROKEN,
    FORBIDDEN,
    GATED,
    LOST_FILES,
    NOT_FOUND,
    HubServer,
    data_file,
    parquet,
)

ROOT = Path(__file__).parents[3]
ID = "made-up/bench"
LINES = "processed_data.jsonl"
FIRST, SECOND, MISSING = "a" * 40, "b" * 40, "c" * 40
SPLITS = ("finance", "legal", "finance_hard", "legal_hard")
TOKEN = "hf_made_up_token"

ONLINE = {
    "first": ("load_split", ID, FIRST, "finance"),
    "other split": ("load_split", ID, FIRST, "legal_hard"),
    "tag": ("load_split", ID, "v2", "finance"),
    "resolved tag": ("resolve_revision", ID, "v2"),
    "missing commit": ("load_split", ID, MISSING, "finance"),
    "missing tag": ("resolve_revision", ID, "v9"),
    "token as tag": ("resolve_revision", ID, TOKEN),
    "gated": ("load_split", "made-up/gated", FIRST, "finance"),
    "forbidden": ("load_split", "made-up/forbidden", FIRST, "finance"),
    "unknown id": ("load_split", "made-up/unknown", FIRST, "finance"),
    "private": ("resolve_revision", "made-up/private", "main"),
    "malformed id": ("resolve_revision", "a/b/c", "main"),
    "failing": ("load_split", "made-up/failing", FIRST, "finance"),
    "unknown split": ("load_split", ID, FIRST, "medicine"),
    "pooled splits": ("load_split", ID, FIRST, "finance+finance_hard"),
    "lost": ("load_split", "made-up/lost", FIRST, "finance"),
    "empty": ("load_split", "made-up/empty", FIRST, "finance"),
    "broken": ("load_split", "made-up/broken", FIRST, "finance"),
    "one file of lines": ("load_split", "made-up/lines", FIRST, "train"),
    "one of several files": ("rows_of_file", "made-up/several", "main", "all/oss_eval.jsonl"),
    "unknown file": ("rows_of_file", "made-up/several", "main", "hard.jsonl"),
    "file of a gated id": ("rows_of_file", "made-up/gated", FIRST, "x.jsonl"),
}
OFFLINE = {
    "first": ("load_split", ID, FIRST, "finance"),
    "second": ("load_split", ID, SECOND, "finance"),
    "not cached": ("load_split", ID, MISSING, "finance"),
    "never seen": ("load_split", "made-up/never-seen", FIRST, "finance"),
    "tag": ("load_split", ID, "v2", "finance"),
    "unknown split": ("load_split", ID, FIRST, "medicine"),
    "one of several files": ("rows_of_file", "made-up/several", FIRST, "all/oss_eval.jsonl"),
    "another of several files": ("rows_of_file", "made-up/several", FIRST, "all/meta_eval.jsonl"),
}
DOWN = {
    "cached": ("load_split", ID, FIRST, "finance"),
    "tag": ("resolve_revision", ID, "main"),
}


@dataclass(frozen=True)
class Session:
    """One process: how each of its calls ended, what it printed aside, what it asked of the hub."""

    outcomes: dict[str, dict[str, Any]]
    stderr: str
    requests: list[str]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows that a call returned."""
        assert self.outcomes[name]["error"] is None
        rows: list[dict[str, Any]] = self.outcomes[name]["value"]
        return rows

    def error(self, name: str) -> str:
        """The line with which a call failed."""
        line: str = self.outcomes[name]["error"]
        return line


def rows_of(version: str) -> dict[str, list[dict[str, Any]]]:
    """Two tasks a split, the first with two turns, named for the version of the data set."""
    turns = {"turns": 2, "response_0": "Two.", "model_0": "made-up", "prompt_1": "And taxed?"}
    return {split: [hub_row(f"{version}-{split}-0", **turns), hub_row(f"{version}-{split}-1")] for split in SPLITS}


def research_rows() -> list[dict[str, Any]]:
    """Tasks of another benchmark, whose repository is one file of JSON lines."""
    return [research_row(number) for number in range(3)]


HEALTH = [{"prompt_id": "h0", "prompt": [], "ideal": None}, {"prompt_id": "h1", "prompt": [], "ideal": {"refs": ["x"]}}]
META = [{"prompt_id": "h0", "binary_labels": [True, False]}]
"""Files of one repository that have no columns in common, so that they are no splits of one data set."""


def lines_of(rows: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def publish_all(hub: HubServer) -> None:
    """Fill the hub with a data set in two revisions and with one data set for each failure."""
    hub.publish(ID, FIRST, rows_of("first"), names=["v1"])
    hub.publish(ID, SECOND, rows_of("second"), names=["v2", "main"])
    hub.publish("made-up/empty", FIRST, {}, replace={"README.md": b"No data yet."})
    hub.publish("made-up/lines", FIRST, {}, replace={"README.md": b"Lines.", LINES: lines_of(research_rows())})
    several = {"README.md": b"Several.", "all/oss_eval.jsonl": lines_of(HEALTH), "all/meta_eval.jsonl": lines_of(META)}
    hub.publish("made-up/several", FIRST, {}, names=["main"], replace=several)
    cut = {data_file("legal"): parquet(rows_of("cut")["legal"])[:-100]}
    hub.publish("made-up/broken", FIRST, rows_of("broken"), replace=cut)
    refusals = {
        "gated": GATED, "forbidden": FORBIDDEN, "private": NOT_FOUND, "lost": LOST_FILES, "failing": BROKEN,
    }  # fmt: skip
    for name, refusal in refusals.items():
        hub.publish(f"made-up/{name}", FIRST, rows_of(name))
        hub.refuse(f"made-up/{name}", refusal)


def run(
    calls: Mapping[str, tuple[str, ...]], url: str, home: Path, **settings: str
) -> tuple[dict[str, dict[str, Any]], str]:
    """The outcomes of `calls` in a new process that works in `home`, and its stderr."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment = inherited | {
        "PYTHONPATH": str(ROOT), "HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # counted at a host outside of HF_ENDPOINT
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.tasks.dataset.runner", json.dumps(list(calls.values()))]
    done = subprocess.run(
        command, env=environment | settings, cwd=home, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(calls, json.loads(done.stdout), strict=True)), done.stderr
