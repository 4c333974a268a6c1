"""The output of three made-up warehouses: rows of relations, figures of the report, JSON and exit codes of commands.

An output is a list of lines. Of a long one a fixed part of the lines is kept, beside a hash of all of them: any change
is found, and most changes are shown as rows.
"""

import contextlib
import csv
import difflib
import hashlib
import io
import itertools
import json
import lzma
import os
import re
import shlex
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import duckdb
import yaml

from flows.cli.main import cli, main
from flows.report import write_report
from tasks.config.job import Job
from tests.faults.server import FaultServer
from tests.flows.conftest import commands_of
from tests.flows.stopping.stopping_world import BLOCK, Script, settings, write_tasks
from tests.tasks.report.synthetic.contenders import CONTENDERS, JUDGES, NIGHTS, PEOPLE
from tests.tasks.report.synthetic.research import research_job
from tests.tasks.report.synthetic.world import report_world

KEPT = Path(__file__).parent
DIGITS, MOST_LINES = 9, 1500
_NOT_OF_THE_DATA = {"created_at", "selected_at", "basis"}
"""Columns that differ from build to build."""
_LEFT_OUT = {"published_parts", "published_from"}
_MODELS = [each.label for each in CONTENDERS]

COMMANDS = {
    "world": (
        "leaderboard", "leaderboard --score min_normalized", "leaderboard --hard", "leaderboard --risk",
        "leaderboard --debiased", "leaderboard --debiased --by category", "leaderboard --selection latest",
        "leaderboard --vintage all", f"leaderboard --judge {PEOPLE}",
        f"leaderboard --split finance --model {_MODELS[0]}",
        *(f"leaderboard --by {by}" for by in (
            "category", "severity", "turns", "reference_texts", "subset", "topic", "expert", "decision_type",
            "economic_pathway", "jurisdiction")),
        f"status --night {NIGHTS[-1]}", f"status --vintage {NIGHTS[0]}", "status --runs", "status --spend",
        f"diff {_MODELS[0]} {_MODELS[1]}", f"diff {_MODELS[0]} {_MODELS[1]} {_MODELS[2]} --split finance",
        f"diff {_MODELS[0]} {_MODELS[1]} --debiased", f"diff {_MODELS[0]} {_MODELS[1]} --hard",
        f"diff {JUDGES[0]} {JUDGES[1]}", f"diff {JUDGES[0]} {PEOPLE} --of judge",
        f"diff {NIGHTS[3]} {NIGHTS[4]} --model {_MODELS[5]}",
        "conditions", "conditions --split legal --flips 2", "conditions --hard",
        "judges", "judges --by category", "judges --by model", f"judges --people {PEOPLE}",
        f"cascade {JUDGES[1]} {JUDGES[0]}", f"cascade {JUDGES[1]} {JUDGES[0]} --bound agreement=0.8",
        "criteria suspect", "criteria never-met -n 5", "criteria always-met -n 5", "criteria disagreed",
        "lengths", "lengths --hard", f"weaknesses {_MODELS[0]}", f"weaknesses {_MODELS[0]} --than {_MODELS[1]}",
        "reviews", "plan", f"plan --night {NIGHTS[-1]}", "plan --stopping", "check", "check --list", "benchmarks",
        "figures", "figure leaderboard --by category",
        f"figure diff names={_MODELS[0]} names={_MODELS[1]}", "status --disk --limit 3",
        "sql --describe", "sql --describe leaderboard", "sql --cookbook",
        "sql --cookbook ranking", "sql 'select 1 as one'",
        # What is wrong has an exit code and one line.
        "leaderboard --by topic --risk", "leaderboard --hard --selection s", "leaderboard --score score --risk",
        "leaderboard --score nope", "leaderboard --selection nope", "leaderboard --debiased --by topic",
        "leaderboard --debiased --risk", "leaderboard -o board.txt", "judges --judge nope", "judges --people nope",
        "criteria suspect --judge nope", "criteria", "lengths --split nope", "lengths --score nope", "benchmarks nope",
        f"diff {_MODELS[0]}", f"diff {_MODELS[0]} {_MODELS[0]}", f"diff {_MODELS[0]} {_MODELS[1][:-1]}x",
        f"diff {_MODELS[0]} {_MODELS[1]} --of colour", f"diff {_MODELS[0]} {_MODELS[1]} --score points",
        f"diff {_MODELS[0]} {_MODELS[1]} --split nowhere", f"diff {_MODELS[0]} {_MODELS[1]} --debiased --of judge",
        f"diff {_MODELS[0]} {_MODELS[1]} --debiased --flips 2", f"diff {_MODELS[0]} nobody --debiased",
        f"cascade {JUDGES[0]} {JUDGES[0]}", f"cascade {JUDGES[1]} {JUDGES[0]} --bound speed=1", "figure leaderbord",
        "figure judge_leniency --by category", "figure criteria nonsense=1", "figure criteria n_criteria=many",
        "conditions --model nobody", "conditions --score nothing", "sql --describe leaderbord",
        "diff nobody else", "leaderboard --by nothing", "leaderboard --model nobody", "sql 'drop table tasks'",
        "sql 'select'", "weaknesses nobody", "cascade a b", "diff", "nonsense", "plan --limit 0", "criteria nonsense",
        "verify missing.zip", "import results missing.json", "restore missing", "sample --model nobody",
        "remove response nobody", "import verdicts missing.jsonl", "leaderboard --trials 2", "compact --model m",
        "leaderboard --split nope", "leaderboard --vintage nope", "status --model nope", "status --judge nope",
        "export labelling sheet.csv --model nope", "status --spend --model m", "status --disk --limit 3",
        "status --since 7d", "status --runs --since yesterday", "status --spend --since -1d",
        "select-hard --judge a --judge b", "import --retract b responses a.jsonl", "sql 'select 1' --describe",
        "sql 'select 1' --cookbook ranking", "sql --show", "sql --cookbook rankin", "sql --show leaderbord",
        "sql --show people_agreement", "sql --describe runs --format xml", "remove", "benchmarks prbench",
        # These write, so they come last.
        "export tables set --table leaderboard", "export inspect logs", "export review review.csv -n 5",
        f"export inspect some --model {_MODELS[0]} --judge {JUDGES[0]} --split finance",
        "export datasets data --table verdict_details", "verify set", "export tables set", "verify set --digest 0",
        "export labelling sheet.csv -n 30 --for leaderboard", "aggregate", "select-hard", "check --accept",
    ),
    "research": (
        "leaderboard", "leaderboard --by domain", "leaderboard --hard", "judges", "status", "plan", "lengths",
        "diff delve-1 quarry-pro", "criteria suspect", "check",
    ),
    "stopped": (
        "leaderboard", "status", "diff good bad", "diff good twin", "plan --stopping",
        "sql 'select * exclude (stopping_id, created_at) from stopping_looks order by block, model, compared_model'",
        "sql 'select * exclude (created_at) from stopping_scores order by all'",
        "sql 'select * exclude (looked_at) from stopped_comparisons order by all'",
    ),
}  # fmt: skip
"""What is typed in the folder of each warehouse, with `--json`."""

SHOWN = {
    "world": (
        "leaderboard", "leaderboard --risk", "leaderboard --debiased", f"leaderboard --judge {PEOPLE}",
        *(f"leaderboard --by {by}" for by in ("category", "severity", "subset", "jurisdiction")),
        f"diff {_MODELS[0]} {_MODELS[1]}", f"diff {_MODELS[0]} {_MODELS[1]} {_MODELS[2]} --flips 3",
        f"diff {_MODELS[0]} {_MODELS[1]} --debiased", f"diff {JUDGES[0]} {PEOPLE}", "conditions", "judges",
        "judges --by category", f"judges --people {PEOPLE}", "criteria suspect -n 3", "lengths", "reviews",
        f"weaknesses {_MODELS[0]}", f"cascade {JUDGES[1]} {JUDGES[0]} --all",
        f"cascade {JUDGES[1]} {JUDGES[0]} --bound agreement=0.8", "plan", "plan --stopping", "check --list",
        "benchmarks", "benchmarks prbench", "figures", "figure judge_leniency --format markdown",
        "figure critical --format csv", "leaderboard --by topic -o board.csv", "sql --describe runs",
        "sql --cookbook ranking", "sql --show score_history", "sql --cookbook failed-calls --show",
    ),
    "research": (),
    "stopped": ("leaderboard", "diff good bad"),
}  # fmt: skip
"""What is typed there as people type it, for the tables and sentences that they read."""


Outputs = dict[str, list[str]]
"""Name -> lines; the name is `WAREHOUSE/KIND/NAME`, where the kind is tables, figures or commands."""


def collect(folder: Path) -> Outputs:
    """Build the warehouses in an empty folder and return all their outputs, whole."""
    outputs: Outputs = {}
    for name, job in build(folder).items():
        outputs |= {f"{name}/tables/{table}": lines for table, lines in relations(job)}
        outputs |= {f"{name}/figures/{figure}": lines for figure, lines in figures(folder / name / "site")}
        outputs |= {f"{name}/shown/{command}": texts(folder / name, command, "") for command in SHOWN[name]}
        outputs |= {f"{name}/commands/{command}": texts(folder / name, command) for command in COMMANDS[name]}
    run_until_settled(folder / "stopped")
    for kind, commands, form in (("commands", COMMANDS, "--json"), ("shown", SHOWN, "")):
        for command in commands["stopped"]:
            # The provider has another port each time, and so everything that is named by a hash of it has another name.
            lines = texts(folder / "stopped", command, form)
            outputs[f"stopped/{kind}/{command}"] = [re.sub(r"\b[0-9a-f]{16,}\b", "HASH", line) for line in lines]
    for name, command in (("", cli), *commands_of(cli)):
        about = {"info_name": f"prbench {name}".strip(), "terminal_width": 108, **cli.context_settings}
        with click.Context(command, **about) as context:
            outputs[f"help/pages/{name}"] = command.get_help(context).splitlines()
    return outputs


def run_until_settled(folder: Path) -> None:
    """Run three models in a folder until their comparisons are settled; one of them is stopped early."""
    folder.mkdir()
    with FaultServer(Script()) as server, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        stopping = {"block": BLOCK, "seed": 3}
        actual = settings(server, write_tasks(Path("tasks.jsonl")), stopping=stopping, report={"enabled": False})
        Path("prbench.yaml").write_text(yaml.safe_dump({**actual, "warehouse": "data"}), encoding="utf-8")
        assert 0 == main(["run", "-q", "--no-prefect"])


def shortened(lines: list[str]) -> list[str]:
    """Return the lines that are kept of an output: all, or those whose checksum falls into a fixed part."""
    if len(lines) <= MOST_LINES:
        return lines
    share = len(lines) // MOST_LINES + 1
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    shown = [line for line in lines[1:] if zlib.crc32(line.encode()) % share == 0]
    return [f"{len(lines)} lines with the hash {digest}, one of {share} shown", lines[0], *shown]


def keep(outputs: Outputs) -> None:
    """Replace what is kept."""
    for kind in sorted({_kind(name) for name in outputs}):
        of_kind = {name: shortened(lines) for name, lines in sorted(outputs.items()) if _kind(name) == kind}
        (KEPT / f"{kind}.json.xz").write_bytes(lzma.compress(json.dumps(of_kind).encode()))


def kept() -> Outputs:
    """Return what is kept."""
    actual: Outputs = {}
    for path in sorted(KEPT.glob("*.json.xz")):
        actual |= json.loads(lzma.decompress(path.read_bytes()))
    return actual


def differences(name: str, before: list[str], after: list[str], most: int = 20) -> list[str]:
    """Return how an output differs from what is kept, as the first lines of a diff; none where they are equal."""
    lines = difflib.unified_diff(before, shortened(after), f"{name} kept", f"{name} now", lineterm="", n=0)
    return list(itertools.islice(lines, most))


def _kind(name: str) -> str:
    return "-".join(name.split("/")[:2])


def build(folder: Path) -> dict[str, Job]:
    """Build the two warehouses in a folder, each with a configuration and its report."""
    (folder / "research").mkdir()
    jobs = {"world": report_world(folder / "world"), "research": research_job(folder / "research")}
    for name, job in jobs.items():
        settings = job.settings.model_dump(mode="json", exclude_unset=True, exclude_defaults=True)
        settings["dataset"] = {"source": os.path.relpath(job.settings.dataset.source, folder / name)}
        settings |= {"benchmark": job.settings.benchmark, "warehouse": os.path.relpath(job.warehouse, folder / name)}
        (folder / name / "prbench.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
        write_report(job, folder / name / "site")
    return jobs


def relations(job: Job) -> Iterator[tuple[str, list[str]]]:
    """Yield each public relation with its rows as lines of CSV, sorted, numbers rounded; a header comes first."""
    with duckdb.connect(str(Path(job.warehouse) / "prbench.duckdb"), read_only=True) as database:
        query = "select table_name from information_schema.tables where table_schema = 'main' order by all"
        for (name,) in database.execute(query).fetchall():
            if name not in _LEFT_OUT:
                actual = database.execute(f'from main."{name}"')
                columns = [column[0] for column in actual.description or ()]
                yield name, as_lines(columns, actual.fetchall())


def figures(site: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each figure of a report with the rows of its CSV file."""
    for path in sorted(site.rglob("figures/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = csv.reader(file)
        yield path.stem, as_lines(columns, rows)


def as_lines(columns: list[str], rows: list[Any]) -> list[str]:
    """Return a header and the sorted rows as CSV, without the columns that differ from build to build."""
    kept = [index for index, name in enumerate(columns) if name not in _NOT_OF_THE_DATA]
    lines = sorted(_line([_rounded(row[index]) for index in kept]) for row in rows)
    return [_line([columns[index] for index in kept]), *lines]


def texts(folder: Path, command: str, form: str = "--json") -> list[str]:
    """Return what a command prints in a folder, as JSON where it can, with its exit code in the first line."""
    arguments = shlex.split(command)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*arguments, *form.split()])
    text = out.getvalue()
    with contextlib.suppress(json.JSONDecodeError):
        text = json.dumps(_rounded(json.loads(text)), indent=1, ensure_ascii=False)
    errors = err.getvalue() if code == 2 else ""
    text = f"exit code {code}\n{text}\n{errors}".replace(str(folder.resolve()), "FOLDER").rstrip()
    text = text.replace(str(KEPT.parents[1]), "PROJECT")
    return _TIMES.sub("TIME", text).splitlines()


_TIMES = re.compile(
    r'(?<="seconds": )[\d.]+|\d{8}T\d{6}-[0-9a-f]{8}|'
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"
)
"""Run ids, times, and how long something took."""


def _line(cells: list[Any]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(cells)
    return file.getvalue().replace("\n", "\\n")


def _rounded(value: Any) -> Any:
    """Return a value with all numbers in it rounded; text that is a number with decimals, too."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", value):
        return repr(round(float(value), DIGITS) + 0.0)
    return value
