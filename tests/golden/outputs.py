"""The output of three made-up warehouses: rows of relations, figures of the report, JSON and exit
codes of commands.

An output is a list of lines. Of a long output, a fixed sample of the lines is kept with a hash of
all lines without their decimal numbers. Decimal numbers are compared up to the precision that does
not depend on the processor.
"""

import contextlib
import csv
import difflib
import hashlib
import io
import itertools
import json
import lzma
import math
import os
import re
import shlex
import shutil
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
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
from tests.tasks.report.synthetic.research import research_job
from tests.tasks.report.synthetic.world import report_world

HERE = Path(__file__).parent
KEPT = HERE / "kept"
MOST_BYTES = 64_000
"""A larger output is kept compressed."""
DIGITS = 9
_DECIMAL = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
MOST_LINES = 1500
_NOT_OF_THE_DATA = {"created_at", "selected_at", "basis", "evaluation_id"}
"""Columns that differ from build to build, or from processor to processor."""
_LEFT_OUT = {"published_parts", "published_from"}
COMMANDS: dict[str, dict[str, list[str]]] = yaml.safe_load(
    (HERE / "commands.yaml").read_text()
)
"""Warehouse -> commands to run in its folder: `commands` with `--json`, `shown` without."""
FORMS = {"shown": "", "commands": "--json"}
PARTS = ("world", "research", "stopped", "help")
"""Two warehouses, a run that stops early, and the pages of help."""
Outputs = dict[str, list[str]]
"""Name -> lines; the name is `PART/KIND/NAME`, where the kind is tables, figures, commands, shown
or pages.
"""


def collect(folder: Path) -> Outputs:
    """Build the warehouses in an empty folder and return all their outputs in full."""
    (folder / "research").mkdir()
    jobs = {
        "world": report_world(folder / "world"),
        "research": research_job(folder / "research"),
    }
    return {
        name: lines
        for part in PARTS
        for name, lines in outputs_of(part, folder, jobs).items()
    }


def moved(job: Job, folder: Path) -> Job:
    """Copy the warehouse of a job, its data and its report to a folder, and return the job
    there.
    """
    before = job.warehouse.parent
    source = Path(job.settings.dataset.source)
    shutil.copytree(
        before,
        folder,
        ignore=shutil.ignore_patterns("lock", "living", "drilldown"),
    )
    dataset = job.settings.dataset.model_copy(
        update={"source": str(folder / source.relative_to(before))}
    )
    settings = job.settings.model_copy(update={"dataset": dataset})
    return job.model_copy(
        update={"settings": settings, "warehouse": folder / "warehouse"}
    )


def outputs_of(part: str, folder: Path, jobs: Mapping[str, Job]) -> Outputs:
    """Return all outputs of a part; the warehouse of a job is in a folder of the part's name."""
    if part == "help":
        return {
            f"help/pages/{name}": help_of(name, command)
            for name, command in (("", cli), *commands_of(cli))
        }
    outputs = {}
    if part in jobs:
        configure(jobs[part], folder / part)
        outputs |= {
            f"{part}/tables/{table}": lines for table, lines in relations(jobs[part])
        }
        outputs |= {
            f"{part}/figures/{figure}": lines
            for figure, lines in figures(folder / part / "site")
        }
    else:
        run_until_settled(folder / part)
    for kind, form in FORMS.items():
        outputs |= {
            f"{part}/{kind}/{command}": texts(folder / part, command, form)
            for command in COMMANDS[part][kind]
        }
    if part in jobs:
        return outputs
    # The provider's port changes each time, and with it every hash that depends on it.
    return {
        name: [re.sub(r"\b[0-9a-f]{16,}\b", "HASH", line) for line in lines]
        for name, lines in outputs.items()
    }


def help_of(name: str, command: click.Command) -> list[str]:
    """Return the help of a command as on a terminal of 108 columns."""
    about = {
        "info_name": f"prbench {name}".strip(),
        "terminal_width": 108,
        **cli.context_settings,
    }
    with click.Context(command, **about) as context:
        return command.get_help(context).splitlines()


def run_until_settled(folder: Path):
    """Run three models in a folder until their comparisons are settled; one of them is stopped
    early.
    """
    folder.mkdir()
    with (
        FaultServer(Script()) as server,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        configuration = settings(
            server,
            write_tasks(Path("tasks.jsonl")),
            stopping={"block": BLOCK, "seed": 3},
            report={"enabled": False},
            warehouse="data",
        )
        text = yaml.safe_dump(configuration)
        Path("prbench.yaml").write_text(text)
        assert main(["run", "-q", "--no-prefect"]) == 0


def shortened(lines: list[str]) -> list[str]:
    """Return the lines to keep of an output: all, or a hash of all and a sample that is chosen by
    checksum, both without decimal numbers.
    """
    if len(lines) <= MOST_LINES:
        return lines
    share = len(lines) // MOST_LINES + 1
    texts = [_DECIMAL.sub("#", line).encode() for line in lines]
    digest = hashlib.sha256(b"\n".join(texts)).hexdigest()
    is_shown = [zlib.crc32(text) % share == 0 for text in texts]
    sample = itertools.compress(lines[1:], is_shown[1:])
    return [
        f"{len(lines)} lines with the hash {digest}, one of {share} shown",
        lines[0],
        *sample,
    ]


def keep(outputs: Outputs):
    """Replace the kept outputs: a file of text for each, compressed if it is larger than
    `MOST_BYTES`.
    """
    shutil.rmtree(KEPT, ignore_errors=True)
    for name, lines in outputs.items():
        text = "".join(f"{line}\n" for line in [name, *shortened(lines)]).encode()
        path = KEPT / _file_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if len(text) <= MOST_BYTES:
            path.write_bytes(text)
        else:
            path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(text))


@cache
def kept() -> Outputs:
    """Return the kept outputs; the first line of a file is the output's name."""
    outputs = {}
    for path in sorted(KEPT.rglob("*.*")):
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.decompress(content)
        name, *lines = content.decode().removesuffix("\n").split("\n")
        outputs[name] = lines
    return outputs


def differences(
    name: str,
    before: list[str],
    after: list[str],
    most: int = 20,
) -> list[str]:
    """Return the first lines of a diff between a kept output and the actual one; none if they are
    equal.
    """
    actual = [
        kept_line if agree(kept_line, line) else line
        for kept_line, line in itertools.zip_longest(
            before, shortened(after), fillvalue=""
        )
    ]
    lines = difflib.unified_diff(
        before,
        actual,
        f"{name} kept",
        f"{name} now",
        lineterm="",
        n=0,
    )
    return list(itertools.islice(lines, most))


def agree(kept_line: str, line: str) -> bool:
    """Return whether two lines differ at most in the last digits of decimal numbers.

    Intervals are computed in single precision, whose sums depend on the processor.
    """
    if _DECIMAL.sub("#", kept_line) != _DECIMAL.sub("#", line):
        return False
    numbers = zip(_DECIMAL.findall(kept_line), _DECIMAL.findall(line), strict=True)
    return all(
        math.isclose(float(kept_number), float(number), rel_tol=1e-6, abs_tol=1e-6)
        for kept_number, number in numbers
    )


def _file_name(name: str) -> str:
    """Return the path of a kept output; of a command, what no file name may hold is a hyphen."""
    part, kind, title = name.split("/", 2)
    ending = "csv" if kind in {"tables", "figures"} else "txt"
    words = re.sub(r"[^\w.=-]+", "-", title).strip("-") or "prbench"
    return f"{part}/{kind}/{words}.{ending}"


def configure(job: Job, folder: Path):
    """Write the configuration of a job to a folder, and its report if there is none."""
    settings = job.settings.model_dump(
        mode="json",
        exclude_unset=True,
        exclude_defaults=True,
    )
    settings["dataset"] = {
        "source": os.path.relpath(job.settings.dataset.source, folder)
    }
    settings |= {
        "benchmark": job.settings.benchmark,
        "warehouse": os.path.relpath(job.warehouse, folder),
    }
    (folder / "prbench.yaml").write_text(
        yaml.safe_dump(settings, sort_keys=False),
    )
    if not (folder / "site").exists():
        write_report(job, folder / "site")


def relations(job: Job) -> Iterator[tuple[str, list[str]]]:
    """Yield each public relation with its rows as lines of CSV, sorted, numbers rounded; a header
    comes first.
    """
    path = str(job.warehouse / "prbench.duckdb")
    query = """
        select table_name
        from information_schema.tables
        where table_schema = 'main'
        order by all
    """
    with duckdb.connect(path, read_only=True) as database:
        for (name,) in database.execute(query).fetchall():
            if name not in _LEFT_OUT:
                result = database.execute(f'from main."{name}"')
                columns = [column[0] for column in result.description or ()]
                yield name, as_lines(columns, result.fetchall())


def figures(site: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each figure of a report with the rows of its CSV file."""
    for path in sorted(site.rglob("figures/*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = csv.reader(file)
        yield path.stem, as_lines(columns, rows)


def as_lines(columns: list[str], rows: list[Any]) -> list[str]:
    """Return a header and the sorted rows as CSV, without the columns that differ from build to
    build.
    """
    positions = []
    for position, name in enumerate(columns):
        if name not in _NOT_OF_THE_DATA:
            positions.append(position)

    def line_of(row):
        return _line(_rounded([row[position] for position in positions]))

    return [line_of(columns), *sorted(map(line_of, rows))]


def texts(folder: Path, command: str, form: str) -> list[str]:
    """Return the output of a command in a folder, as JSON if possible, after a first line with the
    exit code.
    """
    arguments = shlex.split(command)
    out = io.StringIO()
    err = io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = main([*arguments, *form.split()])
    text = out.getvalue()
    with contextlib.suppress(json.JSONDecodeError):
        text = json.dumps(
            _rounded(json.loads(text)),
            indent=1,
            ensure_ascii=False,
        )
    errors = err.getvalue() if code == 2 else ""
    output = f"exit code {code}\n{text}\n{errors}".rstrip()
    output = output.replace(str(folder.resolve()), "FOLDER")
    output = output.replace(str(HERE.parents[1]), "PROJECT")
    return _TIMES.sub("TIME", output).splitlines()


_TIMES = re.compile(
    r'(?<="seconds": )[\d.]+|\d{8}T\d{6}-[0-9a-f]{8}|'
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"
)
"""Durations, run ids, and times."""


def _line(cells: list[Any]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(cells)
    return file.getvalue().replace("\n", "\\n")


def _rounded(value: Any) -> Any:
    """Return a value with all numbers in it rounded, also decimal numbers that are text."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, list):
        return [_rounded(element) for element in value]
    if isinstance(value, dict):
        # The id of an evaluation is a hash of intervals, which depend on the processor.
        return {
            name: "ID" if name == "evaluation_id" else _rounded(element)
            for name, element in value.items()
        }
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return repr(round(float(value), DIGITS) + 0.0)
    return value
