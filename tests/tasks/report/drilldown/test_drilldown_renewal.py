"""The files of the drill-down: the same data gives the same bytes, and a later build writes only
changed files.
"""

import shutil
from pathlib import Path
from unittest.mock import patch

import pytest

from tasks.config.job import Job
from tasks.report.build import build
from tasks.report.drilldown import blocks
from tasks.report.rendering import program
from tasks.report.rendering.site import Site
from tests.kit import Rows, at, combined
from tests.tasks.report.drilldown.drilled import (
    data,
    data_file,
    drill,
    files,
    key_of,
    response_rows_of,
    store,
    tiny_job,
)
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_leaderboard")]

TASKS = ("t1", "t2", "t3")


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    """A job whose warehouse no test changes."""
    return tiny_job(tmp_path_factory.mktemp("tiny"), TASKS)


@pytest.fixture(scope="module")
def built(job: Job, tmp_path_factory) -> Path:
    """The job's drill-down."""
    folder = tmp_path_factory.mktemp("built") / "site"
    return drill(job, folder)


@pytest.fixture
def site(built: Path, tmp_path) -> Path:
    """A copy of the drill-down."""
    return shutil.copytree(built, tmp_path / "site")


def block_names(site: Path) -> set[str]:
    """Return the names of the files of entries' responses."""
    names = set()
    for entry in data_file(site)["entries"]:
        names.update(entry["blocks"].values())
    return names


def modified_at_ns(site: Path) -> dict[str, int]:
    """Return when each data file was written."""
    return {path.stem: path.stat().st_mtime_ns for path in (site / "data").iterdir()}


def build_again(job: Job, site: Path) -> set[str]:
    """Build, and return the names of the files of entries' responses that were written."""
    before = modified_at_ns(site)
    drill(job, site)
    after = modified_at_ns(site)
    return {name for name in block_names(site) if after[name] != before.get(name)}


def test_a_report_of_texts_that_exceed_the_memory_limit_is_built_without_it(
    job,
    tmp_path,
    monkeypatch,
):
    build(job, tmp_path / "usual")
    monkeypatch.setattr("warehouse.reader.memory_limit", lambda *_, **__: "10MB")
    with patch.object(
        Warehouse, "reader", autospec=True, side_effect=Warehouse.reader
    ) as reader:
        build(job, tmp_path / "without_limit")

    contents = files(tmp_path / "usual")
    assert len(contents) > 50
    assert files(tmp_path / "without_limit") == contents
    [_, call] = reader.call_args_list
    assert call.args[1] is None  # no folder to spill to: nothing limits the memory


def test_a_second_build_writes_no_data_file(job, site):
    before = modified_at_ns(site)

    drill(job, site)

    assert modified_at_ns(site) == before


def test_a_night_of_one_model_writes_its_files_alone(tmp_path):
    job = tiny_job(tmp_path, TASKS)
    site = drill(job, tmp_path / "site")
    store(job, response_rows_of(TASKS[:2], "m1", "night", created_at=None))

    new_names = build_again(job, site)

    # The sampling before the night stays, to compare with: the first two tasks have another file.
    assert len(new_names) == 2
    assert len(block_names(site) - new_names) == 6


def test_a_later_verdict_renews_its_own_file_and_no_other(tmp_path):
    tables = response_rows_of(TASKS, "m2")
    verdict = tables["verdicts"][2]
    failure = {
        "status": "timeout",
        "value": None,
        "explanation": None,
        "error": "no reply",
    }
    tables["verdicts"][2] = verdict | failure
    job = tiny_job(tmp_path, TASKS, ("m1",), further=tables)
    site = drill(job, tmp_path / "site")
    store(job, {"verdicts": [verdict]})

    assert len(build_again(job, site)) == 1


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_text(""),
        lambda path: path.write_text("prbench.give("),
        lambda path: path.write_bytes(path.read_bytes().replace(b"A", b"B", 1)),
        Path.unlink,
    ],
)
def test_a_file_that_is_damaged_cut_off_or_gone_is_written_again(job, site, harm):
    name = min(block_names(site))
    path = site / f"data/{name}.js"
    content = path.read_bytes()
    harm(path)

    assert build_again(job, site) == {name}
    assert path.read_bytes() == content


def die(site: Site, name: str, _content: bytes):
    """Write a part of a file, and end."""
    (site.folder / "data" / f".{'0' * 32}.tmp").write_text(f"{name}, cut off")
    raise KeyboardInterrupt


def test_a_killed_build_leaves_the_report_to_the_next_one(tmp_path, monkeypatch):
    job = tiny_job(tmp_path, TASKS)
    site = drill(job, tmp_path / "site")
    before = data(site)
    store(job, response_rows_of(TASKS, "m1", "night", created_at=None))
    with monkeypatch.context() as killed:
        killed.setattr(blocks, "write_packed", die)
        with pytest.raises(KeyboardInterrupt):
            drill(job, site)

    assert data(site) == before
    drill(job, site)
    drill(job, site)
    assert files(site) == files(drill(job, tmp_path / "afresh"))


def test_all_files_are_written_again_with_another_version_of_a_library(
    job, site, monkeypatch
):
    former_names = block_names(site)
    installed_version = program.version

    def version(name):
        return "99" if name == "pyromark" else installed_version(name)

    with monkeypatch.context() as patched:
        patched.setattr(program, "version", version)
        program.hash_of_program.cache_clear()
        try:
            drill(job, site)
        finally:
            program.hash_of_program.cache_clear()

    assert block_names(site).isdisjoint(former_names)


def responses_to(conversation_id: str, model: str, status: str) -> Rows:
    """A model's response to a conversation, with verdicts if it is usable; those on the current
    conversation are the opposite of the others.
    """
    tables = response_rows_of(
        ["t1"],
        model,
        suffix=f"/{conversation_id}",
        conversation_id=conversation_id,
        status=status,
    )
    if status != "ok":
        return {"responses": tables["responses"]}
    if conversation_id == "a-conversation":
        first, second = tables["verdicts"]
        first |= {"value": 0.0, "status": "unmet"}
        second |= {"value": 1.0, "status": "met"}
    return tables


def test_of_two_responses_in_a_trial_that_to_the_current_conversation_counts(
    tmp_path,
):
    tables = combined(
        responses_to("a-conversation", "m1", "ok"),
        responses_to("an earlier one", "m1", "ok"),
        responses_to("a-conversation", "m2", "refused"),
        responses_to("an earlier one", "m2", "ok"),
        responses_to("a-conversation", "m3", "ok"),
        responses_to("an earlier one", "m3", "refused"),
        responses_to("an earlier one", "m4", "ok"),
    )
    job = tiny_job(tmp_path, ("t1",), models=(), further=tables)

    contents = data(drill(job, tmp_path / "site"))

    marks = []
    for model in ("m1", "m2", "m3", "m4"):
        marks += contents[f"entry-{key_of(model)}"].values()
    assert marks == [{"1": "um"}, {"1": "nn"}, {"1": "um"}, {"1": "mu"}]


def test_a_row_that_fails_again_is_shown_with_its_new_cause(tmp_path):
    first_model = response_rows_of(("t1",), "m1")
    second_model = response_rows_of(("t1",), "m2")
    response = first_model["responses"][0]
    verdict = second_model["verdicts"][0]
    response |= {"status": "timeout", "text": None, "error": "no response"}
    verdict |= {"status": "timeout", "value": None, "error": "no verdict"}
    tables = combined(first_model, second_model)
    job = tiny_job(tmp_path, ("t1",), models=(), further=tables)
    contents = str(data(drill(job, tmp_path / "site")))
    assert "no response" in contents
    assert "no verdict" in contents

    later = {"created_at": at(9000)}
    later_response = response | {"error": "the second cause"} | later
    later_verdict = verdict | {"error": "the third cause"} | later
    store(job, {"responses": [later_response], "verdicts": [later_verdict]})

    contents = str(data(drill(job, tmp_path / "site")))
    assert "the second cause" in contents
    assert "the third cause" in contents
