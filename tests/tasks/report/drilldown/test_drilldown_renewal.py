"""The files of the drill-down: the same data gives the same bytes, and a later build makes only what changed."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tasks.config.job import Job
from tasks.figures.scope import criterion_key, entry_key, task_address, task_key
from tasks.report.drilldown import task_files
from tasks.report.drilldown.task_files import Renewed
from tests.tasks.report.drilldown.drilled import answered, data, drill, files, store, tiny_job

pytestmark = pytest.mark.slow

TASKS = ("t1", "t2", "t3")
SAMPLED = {"model_config_hash": "a-configuration", "vintage": "base"}
HOSTILE = (
    "../../../etc/passwd", "a/b\\c", "con", "</script>", "x" * 300, "", "\u202etxt", "T1", "t1", "'; drop table x",
)  # fmt: skip


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job whose warehouse stays as it is."""
    return tiny_job(tmp_path_factory.mktemp("tiny"), TASKS)


@pytest.fixture(scope="module")
def built(job: Job, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Renewed]:
    """Its drill-down, and what building it did."""
    folder = tmp_path_factory.mktemp("built") / "site"
    return folder, drill(job, folder)


@pytest.fixture
def site(built: tuple[Path, Renewed], tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(built[0], tmp_path / "site")


def test_the_same_data_gives_the_same_bytes(job: Job, site: Path, tmp_path: Path) -> None:
    drill(job, tmp_path / "other")

    assert files(site) == files(tmp_path / "other")


def test_a_second_build_makes_nothing_and_touches_no_file(job: Job, built: tuple[Path, Renewed], site: Path) -> None:
    _, first = built
    before = {path: path.stat().st_mtime_ns for path in (site / "data").iterdir()}

    second = drill(job, site)

    assert Renewed(n_files=3, n_made=9, n_sections=9) == first
    assert Renewed(n_files=0, n_made=0, n_sections=9) == second
    assert before == {path: path.stat().st_mtime_ns for path in (site / "data").iterdir()}


def test_a_night_of_one_model_makes_the_parts_of_that_model_alone(tmp_path: Path) -> None:
    job, site = tiny_job(tmp_path, TASKS), tmp_path / "site"
    drill(job, site)
    store(job, answered(TASKS[:2], "m1", "night", created_at=None))

    renewed = drill(job, site)
    drill(job, tmp_path / "afresh")

    # The sampling before the night stays, to be compared with: of the first two tasks there is one part more.
    assert Renewed(n_files=2, n_made=2, n_sections=11) == renewed
    assert files(tmp_path / "afresh") == files(site)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_however_few_answers_are_read_at_once_the_files_are_the_same(
    job: Job, built: tuple[Path, Renewed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(task_files, "_ANSWERS_IN_HAND", most)

    assert drill(job, tmp_path / "site") == built[1]
    assert files(built[0]) == files(tmp_path / "site")


def test_a_verdict_that_comes_later_renews_its_own_part_and_no_other(tmp_path: Path) -> None:
    job, site = tiny_job(tmp_path, TASKS, ("m1",)), tmp_path / "site"
    rows = answered(TASKS, "m2")
    failed = rows["verdicts"][2] | {"status": "timeout", "value": None, "explanation": None, "error": "no reply"}
    store(job, rows | {"verdicts": [*rows["verdicts"][:2], failed, *rows["verdicts"][3:]]})
    drill(job, site)
    store(job, {"verdicts": [rows["verdicts"][2]]})

    assert Renewed(n_files=1, n_made=1, n_sections=9) == drill(job, site)


def test_a_task_more_changes_no_name_and_no_file_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    (tmp_path / "more").mkdir()
    few, more = tiny_job(tmp_path / "few", TASKS), tiny_job(tmp_path / "more", ("a-task-before", *TASKS))
    drill(few, tmp_path / "few/site")
    drill(more, tmp_path / "more/site")

    one, other = data(tmp_path / "few/site"), data(tmp_path / "more/site")
    for task_id in TASKS:
        assert one[f"task-{task_key(task_id)}"].keys() == other[f"task-{task_key(task_id)}"].keys()


@pytest.mark.parametrize("harm", ["", "prbench.give(", 'prbench.give("task",{});\n', "[]"])
def test_a_file_that_is_broken_is_made_again(job: Job, site: Path, harm: str) -> None:
    path = site / f"data/task-{task_key('t1')}.js"
    whole = path.read_bytes()
    path.write_text(harm)

    assert drill(job, site).n_made == 3
    assert path.read_bytes() == whole


def test_a_file_with_a_line_too_many_is_made_again(job: Job, site: Path) -> None:
    path = site / f"data/task-{task_key('t1')}.js"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\n", b"\n<<<<<<< mine,\n", 1))

    assert drill(job, site).n_made == 3
    assert path.read_bytes() == whole


def test_a_part_that_somebody_changed_is_not_believed(job: Job, site: Path) -> None:
    path, other = (site / f"data/task-{task_key(each)}.js" for each in ("t1", "t2"))
    whole = path.read_bytes()
    lines, others = whole.decode().split("\n"), other.read_text().split("\n")
    lines[1] = re.sub(r'"[^"]*"\],$', others[1].rsplit(",", 2)[1] + ",", lines[1])  # the body of another task's part
    path.write_text("\n".join(lines))
    assert path.read_bytes() != whole

    assert Renewed(n_files=1, n_made=1, n_sections=9) == drill(job, site)
    assert path.read_bytes() == whole


def test_another_version_of_the_program_or_its_libraries_makes_all_again(
    job: Job, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = task_files.version
    task_files._program.cache_clear()
    monkeypatch.setattr(task_files, "version", lambda name: "99" if name == "pyromark" else given(name))
    try:
        assert drill(job, site).n_made == 9
    finally:
        task_files._program.cache_clear()


def test_an_entry_that_becomes_one_to_compare_with_keeps_its_sections(job: Job, site: Path) -> None:
    renewed = drill(job.model_copy(update={"named_models": ("m1",)}), site)
    with_one = data(site)

    assert renewed.n_made == 0
    entries = with_one["index"]["entries"]
    assert {entry["label"]: entry["is_also"] for entry in entries} == {"m1": False, "m2, base": True}


def test_no_name_of_a_file_holds_anything_of_a_task_or_model(tmp_path: Path) -> None:
    drill(tiny_job(tmp_path, HOSTILE, ("m/../1", "<m2>")), tmp_path / "site")

    names = [path.name for path in (tmp_path / "site/data").iterdir()]
    assert len([name for name in names if name.startswith("task-")]) == len(HOSTILE)
    assert [] == [name for name in names if not re.fullmatch(r"[a-z]+(-[0-9a-f]{16})?\.js", name)]
    assert [] == [path for path in (tmp_path / "site").rglob("*") if "passwd" in path.name]
    assert {row["task_id"] for row in data(tmp_path / "site")["index"]["tasks"]} == set(HOSTILE)


def test_an_address_leads_to_a_task_two_samplings_and_a_criterion() -> None:
    one = {"model": "m&1", "model_config_hash": "c", "vintage": "base"}
    other = one | {"vintage": "a night"}

    page, _, state = task_address("t#1", one, other, "c=1").partition("#")

    expected = {"task": task_key("t#1"), "a": entry_key(one), "b": entry_key(other), "criterion": criterion_key("c=1")}
    assert ("task.html", {name: [value] for name, value in expected.items()}) == (page, parse_qs(state))
    assert len(set(expected.values())) == 4


def test_tasks_that_nobody_has_answered_yet_can_be_read(tmp_path: Path) -> None:
    renewed = drill(tiny_job(tmp_path, ("t1",), models=()), tmp_path / "site")
    held = data(tmp_path / "site")

    assert Renewed(n_files=1, n_made=1, n_sections=1) == renewed
    assert ([], [], None) == tuple(held["index"][name] for name in ("entries", "judgings", "main"))
    assert [{"role": "user", "content": "Why t1?"}] == held[f"task-{task_key('t1')}"]["task"]["conversation"]


@pytest.mark.parametrize(("older", "newer", "listed"), [
    ("ok", "ok", "um"), ("ok", "refused", "nn"), ("refused", "ok", "um"), ("ok", None, "mu"),
])  # fmt: skip
def test_of_two_answers_in_one_trial_the_list_of_verdicts_has_those_on_the_one_to_todays_conversation(
    tmp_path: Path, older: str, newer: str | None, listed: str
) -> None:
    job = tiny_job(tmp_path, ("t1",), models=("other",))
    for conversation_id, status in (("a-conversation", newer), ("an earlier one", older)):
        rows = answered(["t1"], "m1", conversation_id=conversation_id, status=status)
        for each in (*rows["responses"], *rows["verdicts"]):
            each["response_id"] += f"/{conversation_id}"
        for each in rows["verdicts"]:
            each["verdict_id"] += f"/{conversation_id}"
            if conversation_id == "a-conversation":
                each |= {"value": 1 - each["value"], "status": "unmet" if each["status"] == "met" else "met"}
        if status:
            store(job, rows if status == "ok" else {"responses": rows["responses"]})

    drill(job, tmp_path / "site")

    held = data(tmp_path / "site")
    (by_trial,) = held[f"entry-{entry_key({'model': 'm1', **SAMPLED})}"]["marks"].values()
    assert by_trial == {"1": listed}
