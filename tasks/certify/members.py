"""What a certificate holds: rows without texts, the figures made of them, and the SQL that makes them."""

from collections.abc import Sequence
from pathlib import Path

import sql
from tasks.rules.statistics.intervals import METHOD, RESAMPLES, SEED
from warehouse import TABLES, Reader, quoted

FORMAT, VERSION = "prbench-certificate", 1
INTERVALS = {"method": METHOD, "resamples": RESAMPLES, "seed": SEED, "level": 0.95}
"""How this version draws intervals, which the manifest says."""
MANIFEST = "manifest.json"
ROWS = (
    "tasks", "labelled_tasks", "split_members", "criteria", "criterion_labels", "criterion_variants", "responses",
    "verdicts", "hard_subset", "score_definitions", "severities", "stopping_scores",
)  # fmt: skip
"""The tables that figures are computed from."""
KEYS = {**{name: TABLES[name].key for name in ROWS if name in TABLES}, "tasks": ("task_id",)}
"""What no two rows have in common, of benchmark and revision; a label of a task may be given twice."""
RUNS = "runs"
LEADERBOARDS = ("leaderboard", "hard_leaderboard", "breakdown_leaderboard", "severity_leaderboard")
"""The figures: these marts, whole."""
MODELS = (*LEADERBOARDS, "trial_scores")
"""The models that figures rest on, with those that these rest on; intervals over trials are drawn from trial scores."""
_FOLDERS = {**dict.fromkeys((*ROWS, RUNS), "rows"), **dict.fromkeys(LEADERBOARDS, "figures")}
SQL = "sql"


def member_of(name: str) -> str:
    """The name in the archive of a table's rows."""
    return f"{_FOLDERS[name]}/{name}.jsonl"


def write_rows(reader: Reader, names: Sequence[str], folder: Path, benchmark: str, revision: str) -> dict[str, int]:
    """Write tables as members into a folder; how many rows each has."""
    return {name: _written(reader, name, folder / member_of(name), benchmark, revision) for name in names}


def _written(reader: Reader, name: str, path: Path, benchmark: str, revision: str) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {"benchmark": benchmark, "revision": revision}
    query = _query(name)
    used = {key: value for key, value in given.items() if f"${key}" in query}
    return int(reader.value(f"copy ({query}) to {quoted(path)} (format json)", used))


def _query(name: str) -> str:
    if name in LEADERBOARDS and name != "severity_leaderboard":
        return sql.template("questions/certify/leaderboards", leaderboard=name)
    return sql.read(f"questions/certify/{name}")


def models() -> list[sql.Model]:
    """The models of `sql/` that the leaderboards are made by, in the order of building."""
    return sql.leading_to(MODELS, ROWS)


def model_texts() -> dict[str, str]:
    """Member -> the SQL of a model."""
    return {f"{SQL}/{model.name}.sql": model.query + "\n" for model in models()}
