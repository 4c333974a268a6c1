"""The files of the drill-down: the same data gives the same bytes, and a later build writes only
changed files.
"""

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import sql
from tasks.config.job import Job
from tasks.dataset.source import with_revision
from tasks.figures.addresses import entry_key
from tasks.report.build import build
from tasks.report.drilldown import blocks
from tasks.report.rendering import program
from tasks.report.rendering.site import Site
from tests.kit import Patch, combined
from tests.tasks.report.drilldown.drilled import (
    data,
    drill,
    files,
    held,
    response_rows_of,
    store,
    tiny_job,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_leaderboard")]

TASKS = ("t1", "t2", "t3")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job whose warehouse no test changes."""
    return tiny_job(tmp_path_factory.mktemp("tiny"), TASKS)


@pytest.fixture(scope="module")
def built(job: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The job's drill-down."""
    folder = tmp_path_factory.mktemp("built") / "site"
    return drill(job, folder)


@pytest.fixture
def site(built: Path, tmp_path: Path) -> Path:
    """A copy of the drill-down."""
    return shutil.copytree(built, tmp_path / "site")


def parts(site: Path) -> set[str]:
    """The files of entries' responses."""
    return {name for entry in held(site)["entries"] for name in entry["blocks"].values()}


def written(job: Job, site: Path) -> set[str]:
    """The files of entries' responses that a build writes."""
    before = {path.stem: path.stat().st_mtime_ns for path in (site / "data").iterdir()}
    drill(job, site)
    return {
        name
        for name in parts(site)
        if (site / f"data/{name}.js").stat().st_mtime_ns != before.get(name)
    }


def test_a_report_of_texts_that_exceed_the_memory_limit_is_built_without_it(
    job: Job, tmp_path: Path, monkeypatch: Patch
) -> None:
    build(job, tmp_path / "bounded")
    monkeypatch.setattr("warehouse.reader.memory", lambda *_, **__: "10MB")
    build(job, tmp_path / "unbounded")

    contents = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (tmp_path / "bounded", tmp_path / "unbounded")
    ]
    assert contents[0] == contents[1]


def test_a_second_build_makes_nothing_and_touches_no_file(job: Job, site: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (site / "data").iterdir()}

    assert written(job, site) == set()
    assert before == {path: path.stat().st_mtime_ns for path in (site / "data").iterdir()}


def test_a_night_of_one_model_makes_its_files_alone_and_the_next_build_deletes_old_ones(
    tmp_path: Path,
) -> None:
    job = tiny_job(tmp_path, TASKS)
    site = tmp_path / "site"
    drill(job, site)
    first = files(site)
    store(job, response_rows_of(TASKS[:2], "m1", "night", created_at=None))

    new = written(job, site)

    # The sampling before the night stays, to compare with: the first two tasks have another file.
    assert len(parts(site) - new) == 6
    assert len(new) == 2
    fresh = files(drill(job, tmp_path / "afresh"))
    assert {*fresh, *first} == files(site).keys() > fresh.keys()
    drill(job, site)
    assert fresh == files(site)


def test_a_verdict_that_comes_later_renews_its_own_file_and_no_other(tmp_path: Path) -> None:
    job = tiny_job(tmp_path, TASKS, ("m1",))
    site = tmp_path / "site"
    rows = response_rows_of(TASKS, "m2")
    failed = rows["verdicts"][2] | {
        "status": "timeout",
        "value": None,
        "explanation": None,
        "error": "no reply",
    }
    store(job, rows | {"verdicts": [*rows["verdicts"][:2], failed, *rows["verdicts"][3:]]})
    drill(job, site)
    store(job, {"verdicts": [rows["verdicts"][2]]})

    assert len(written(job, site)) == 1


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_text(""),
        lambda path: path.write_text("prbench.give("),
        lambda path: path.write_bytes(path.read_bytes().replace(b"A", b"B", 1)),
        Path.unlink,
    ],
)
def test_a_file_that_is_damaged_cut_off_or_gone_is_made_again(
    job: Job, site: Path, harm: Callable[[Path], object]
) -> None:
    name = min(parts(site))
    path = site / f"data/{name}.js"
    whole = path.read_bytes()
    harm(path)

    assert {name} == written(job, site)
    assert whole == path.read_bytes()


def test_a_killed_build_leaves_the_report_to_the_next_one(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    job = tiny_job(tmp_path, TASKS)
    site = tmp_path / "site"
    drill(job, site)
    before = data(site)
    store(job, response_rows_of(TASKS, "m1", "night", created_at=None))
    with monkeypatch.context() as killed:
        killed.setattr(blocks, "write_packed", _die)
        with pytest.raises(KeyboardInterrupt):
            drill(job, site)

    assert before == data(site)
    drill(job, site)
    drill(job, site)
    assert files(drill(job, tmp_path / "afresh")) == files(site)


def _die(site: Site, name: str, _content: bytes) -> None:
    (site.folder / "data" / f".{'0' * 32}.tmp").write_text(f"{name}, cut off")
    raise KeyboardInterrupt


def drill_with_another_version(document: str, site: Path) -> None:
    """Build in a new process, with another version of a library: a process reads versions only
    once.
    """
    given = program.version
    program.version = lambda name: "99" if name == "pyromark" else given(name)
    drill(with_revision(Job.model_validate_json(document)), site)


def test_another_version_of_a_library_makes_all_again(job: Job, site: Path) -> None:
    before = parts(site)
    with ProcessPoolExecutor(1, get_context("spawn")) as others:
        others.submit(drill_with_another_version, job.model_dump_json(), site).result()

    assert not before & parts(site)


@pytest.mark.parametrize(
    ("older", "newer", "listed"),
    [
        ("ok", "ok", "um"),
        ("ok", "refused", "nn"),
        ("refused", "ok", "um"),
        ("ok", None, "mu"),
    ],
)
def test_of_two_responses_in_a_trial_todays_counts(
    tmp_path: Path, older: str, newer: str | None, listed: str
) -> None:
    job = tiny_job(tmp_path, ("t1",), models=("other",))
    parts_of = []
    for conversation_id, status in (("a-conversation", newer), ("an earlier one", older)):
        rows = response_rows_of(["t1"], "m1", conversation_id=conversation_id, status=status)
        for each in (*rows["responses"], *rows["verdicts"]):
            each["response_id"] += f"/{conversation_id}"
        for each in rows["verdicts"]:
            each["verdict_id"] += f"/{conversation_id}"
            if conversation_id == "a-conversation":
                each |= {
                    "value": 1 - each["value"],
                    "status": "unmet" if each["status"] == "met" else "met",
                }
        if status:
            parts_of.append(rows if status == "ok" else {"responses": rows["responses"]})
    store(job, combined(*parts_of))

    key = entry_key(
        {
            "model": "m1",
            "model_config_hash": "a-configuration",
            "vintage": "base",
        }
    )
    assert [{"1": listed}] == [*data(drill(job, tmp_path / "site"))[f"entry-{key}"].values()]


_FUNCTIONS = {"coalesce", "if", "is", "null", "or", "ternary_as_binary", "varchar"}


def words(text: str) -> set[str]:
    """The names in a piece of SQL."""
    return set(re.findall(r"[a-z_]+", text))


def test_everything_that_the_pages_show_is_in_the_fingerprint() -> None:
    query = sql.queries("report/drilldown")["sections"]
    shown = re.findall(r"list\((?:to_json\()?\{(.*?)\}", query, re.DOTALL)
    values = [
        each.partition(":")[2]
        for one in shown
        for each in re.split(r",(?=\s+(?:--[^\n]*\s+)*\w+:)", one)
    ]

    assert len(shown) == 3
    assert len(values) == 40
    assert set().union(*map(words, values)) - _FUNCTIONS <= words(
        sql.read("report/drilldown/blocks")
    )
