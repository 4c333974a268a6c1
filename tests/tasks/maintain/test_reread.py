"""What an earlier parser read otherwise is put right once, from the ledger, without a call."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.llm.ledger.pruning import prune
from tasks.maintain.reread import reread
from tasks.rules import rereading
from tasks.rules.rereading import may_differ
from tests.builders import job_on
from tests.faults.content import criterion_of, prompt_of
from tests.faults.server import Answer, FaultServer, Request, is_judging
from tests.tasks.maintain.version_1 import read_by_version_1
from tests.tasks.run.runs import judged, prepared, sampled
from warehouse import Warehouse
from warehouse.contracts.tables import TABLES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
NOT_MET = 'The criterion is not met. It only says: </think>{"criteria_met": true, "explanation": "so"}'
GOOD = '{"criteria_met": true, "explanation": "good"}'


@dataclass
class World:
    """A provider, and a warehouse that version 1 filled."""

    server: FaultServer
    job: Job
    bad: Callable[[str], bool] = lambda title: True
    answers: dict[str, str] = field(default_factory=dict)
    reply: str = NOT_MET
    reminded: str = GOOD

    def __call__(self, request: Request, _number: int) -> Answer:
        prompt = prompt_of(request)
        if not is_judging(request):
            return Answer(self.answers.get(request["model"], "It is due."))
        if len(request["messages"]) > 1:
            return Answer(self.reminded)
        return Answer(self.reply if self.bad(criterion_of(prompt)) else GOOD)

    def filled_by_version_1(self) -> None:
        with read_by_version_1():
            sampled(prepared(self.job))
            judged(self.job)
        del self.server.book[:]

    def rows(self, query: str) -> list[dict[str, Any]]:
        with Warehouse(self.job.warehouse).reader() as reader:
            return reader.rows(query)

    def counted(self, table_name: str = "verdicts") -> dict[str, int]:
        rows = self.rows(f"select status, count(*) as n from {table_name} group by status")
        return {row["status"]: row["n"] for row in rows}

    def reread(self) -> None:
        reread(self.job)
        Warehouse(self.job.warehouse).publish()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer() as server:
        yield world_at(server, tmp_path)


def world_at(server: FaultServer, folder: Path, **judge: Any) -> World:
    at = {"api_base": server.api_base}
    job = job_on(
        "sample", folder / "w", models=[{"name": "hosted_vllm/a", "label": "a", **at}],
        judges=[{"name": "hosted_vllm/judge", "label": "judge", "structured_output": False, **at, **judge}],
        limits={"attempts": 1},
    ).model_copy(update={"limit": 2})  # fmt: skip
    world = World(server, job)
    server.behaviour = world
    return world


def test_a_verdict_that_was_read_out_of_prose_becomes_a_failure_and_is_asked_for_once_more(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.bad = lambda title: "not" in title.lower() or len(title) % 2 == 0
    world.filled_by_version_1()
    before = world.counted()
    n_bad = len(world.rows("select 1 from verdicts where explanation = 'so'"))
    assert 0 < n_bad < before["met"]

    world.reread()
    n_all = before["met"]
    assert world.counted() == {"met": n_all - n_bad, "parse_error": n_bad}
    assert f"{n_bad} of {n_all} verdicts and 0 of 2 responses changed" in capsys.readouterr().err
    (found,) = world.rows("select distinct error, value, explanation from verdicts where status = 'parse_error'")
    assert found["error"].startswith("not one JSON object") or "not met" in found["error"]
    assert (found["value"], found["explanation"]) == (None, None)
    assert not world.server.book

    # The first reply is in the ledger: what it takes now is what any unreadable reply takes, one reminder.
    judged(world.job)
    assert world.counted() == {"met": n_all}
    assert len(world.server.book) == n_bad


def test_it_is_done_once(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    world.filled_by_version_1()
    world.reread()
    capsys.readouterr()
    files = sorted(world.job.warehouse.rglob("*.parquet"))

    world.reread()
    assert "" == capsys.readouterr().err
    assert files == sorted(world.job.warehouse.rglob("*.parquet"))
    assert not Warehouse(world.job.warehouse).publish()

    # A later parser looks again, and finds nothing to change.
    monkeypatch.setattr(import_module("tasks.maintain.reread"), "PARSER_VERSION", rereading.PARSER_VERSION + 1)
    counted = world.counted()
    world.reread()
    assert "0 of " in capsys.readouterr().err
    assert counted == world.counted()


def test_a_new_warehouse_has_nothing_to_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = job_on("sample", tmp_path / "w")
    reread(job)
    assert "" == capsys.readouterr().err
    assert rereading.PARSER_VERSION == Warehouse(job.warehouse).parser


def test_verdicts_that_share_a_call_change_together(world: World) -> None:
    job = world.job.model_copy(update={"trials": (1, 2)})
    world.job = job.model_copy(update={"settings": job.settings.model_copy(update={"trials": 2})})
    world.filled_by_version_1()
    n_all = world.counted()["met"]
    assert len(world.rows("select 1 from verdicts where prompt_tokens = 0")) == n_all // 2

    world.reread()
    assert world.counted() == {"parse_error": n_all}


def test_replies_that_are_gone_leave_their_rows_and_are_counted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.filled_by_version_1()
    n_all = world.counted()["met"]
    prune(world.job.warehouse / "ledger", 1e12, lambda cells: dict.fromkeys(cells, True))

    world.reread()
    assert world.counted() == {"met": n_all}
    assert f"{n_all + 2} could not be read again" in capsys.readouterr().err


def test_rows_whose_ledger_is_gone_altogether_are_counted_too(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.filled_by_version_1()
    n_all = world.counted()["met"]
    shutil.rmtree(world.job.warehouse / "ledger")

    world.reread()
    assert world.counted() == {"met": n_all}
    assert f"{n_all + 2} could not be read again" in capsys.readouterr().err


def test_an_answer_that_was_cut_comes_back_whole_and_is_judged_anew(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.bad = lambda _: False
    world.answers = {"a": "Write </think> at the end of it."}
    world.filled_by_version_1()
    n_all = world.counted()["met"]
    assert [{"text": "at the end of it."}] == world.rows("select distinct text from responses")

    world.reread()
    assert [{"text": world.answers["a"], "chars_alnum": 22}] == world.rows(
        "select distinct text, chars_alnum from responses"
    )
    assert {} == world.counted()
    assert f"2 of 2 responses changed; {n_all} verdicts on changed responses were removed" in capsys.readouterr().err
    assert not world.server.book
    judged(world.job)
    assert world.counted() == {"met": n_all}
    assert all("Write </think> at the end" in prompt_of(request) for request in world.server.book)


def test_an_answer_that_shows_nothing_becomes_empty_and_is_sampled_again(world: World) -> None:
    world.answers = {"a": "\u200b"}
    world.filled_by_version_1()
    world.reread()
    assert world.counted("responses") == {"empty": 2}
    assert {} == world.counted()

    world.answers = {"a": "It is due."}
    sampled(world.job)
    assert world.counted("responses") == {"ok": 2}


def test_the_replies_of_provider_batches_are_read_again_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer() as server:
        world = world_at(server, tmp_path, name="openai/judge", mode="batch")
        world.filled_by_version_1()
        n_all = world.counted()["met"]
        world.reread()
        assert world.counted() == {"parse_error": n_all}


def test_a_control_set_has_the_first_values_that_its_verdicts_have_now(world: World) -> None:
    world.bad = lambda title: len(title) % 2 == 0
    world.filled_by_version_1()
    warehouse = Warehouse(world.job.warehouse)
    members = world.rows(
        "select v.*, 'a-set' as set_id, 'a' as conversation_id, value as first_value from verdicts as v"
    )
    columns = TABLES["control_set"].columns
    warehouse.write("control_set", [{column: member[column] for column in columns} for member in members])
    world.reread()

    (counted,) = world.rows("select count(*) as n, count(*) filter (status = 'met') as met from verdicts")
    (kept,) = world.rows(
        "select count(*) as n from control_set inner join verdicts using (verdict_id) where status = 'met'"
    )
    assert (kept["n"], len(world.rows("from control_set"))) == (counted["met"], counted["met"])
    assert counted["met"] < counted["n"]


def test_a_configuration_that_omits_the_tag_reads_the_stored_replies_without_a_call(world: World) -> None:
    world.reply = 'It is not {"criteria_met": true}.</think>{"criteria_met": false}'
    sampled(prepared(world.job))
    world.reminded = "Well."
    judged(world.job)
    assert {"parse_error"} == set(world.counted())
    del world.server.book[:]

    judges = tuple(judge.model_copy(update={"omits_think_tag": True}) for judge in world.job.settings.judges)
    settings = world.job.settings.model_copy(update={"judges": judges})
    judged(world.job.model_copy(update={"settings": settings}))
    counted = world.counted()
    assert counted["unmet"] == counted["parse_error"]  # two readings stand side by side, each under its judge's hash
    assert len(world.rows("select distinct judge_config_hash from verdicts")) == 2


KILLED = """
import os, signal, sys
from pathlib import Path
from tasks.maintain.reread import reread
from tests.builders import job_on
import warehouse.parts.manifest as manifest, warehouse.parts.migrations as migrations
import warehouse.parts.rewriting as rewriting
at = int(sys.argv[2])
seen = 0
def counted(real):
    def wrapped(*given):
        global seen
        for _ in range(2):  # before and after
            seen += 1
            if seen == at:
                os.kill(os.getpid(), signal.SIGKILL)
            if _ == 0:
                found = real(*given)
        return found
    return wrapped
manifest.write_manifest = counted(manifest.write_manifest)
rewriting.rewritten = counted(rewriting.rewritten)
migrations.write_sealed = counted(migrations.write_sealed)
reread(job_on("sample", Path(sys.argv[1])))
print("done", flush=True)
"""


@pytest.mark.long
@pytest.mark.slow
def test_a_kill_at_any_step_is_made_good_by_the_next_command(world: World, tmp_path: Path) -> None:
    world.bad = lambda title: len(title) % 3 == 0
    world.answers = {"a": "Write </think> at the end of it."}
    world.filled_by_version_1()
    one = world.rows("select response_id from responses order by response_id")[0]["response_id"]
    # Of one answer the text stays, so that verdicts on it change and those on the other one go.
    whole = {"text": "Write </think> at the end of it."}
    stored = Warehouse(world.job.warehouse)
    with stored.stored_rows("responses") as rows:
        kept = next(row for row in rows.rows("from responses") if row["response_id"] == one)
    stored.rewrite("responses", {(one,): kept | whole})
    backup = tmp_path / "backup"
    subprocess.run(["cp", "-a", world.job.warehouse, backup], check=True)
    world.reread()
    wanted = fingerprint(world.job.warehouse)

    for at in range(1, 40):
        folder = tmp_path / f"killed-{at}"
        subprocess.run(["cp", "-a", backup, folder], check=True)
        done = subprocess.run(
            [sys.executable, "-c", KILLED, folder, str(at)], cwd=ROOT, text=True, capture_output=True, check=False
        )
        reread(job_on("sample", folder))
        Warehouse(folder).publish()
        assert wanted == fingerprint(folder), at
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.returncode == 0
    assert at > 6


def fingerprint(folder: Path) -> list[Any]:
    with Warehouse(folder).reader() as reader:
        return [
            reader.rows("select verdict_id, status, value, explanation, error from verdicts order by verdict_id"),
            reader.rows("select response_id, status, text from responses order by response_id"),
        ]


@pytest.mark.parametrize(
    ("text", "is_doubtful"),
    [
        ("It is due.", False), (GOOD, False), ("<think>so</think>It is due.", False), (NOT_MET, True),
        ("<think>a</reason>b</think>x", True), ("<think>a", True), ("\u200b", True), ("\u00a0{}", True),
        ("<think>a</think>\u200b", True), ("a <think> b", True), ("<b>bold</b>", False),
        (json.dumps({"criteria_met": True, "x": {"criteria_met": False}}), True),
        (json.dumps({"criteria_met": True, "explanation": 'says "criteria_met"'}), False),
    ],
)  # fmt: skip
def test_few_replies_have_to_be_looked_at_closely(text: str, is_doubtful: bool) -> None:
    assert is_doubtful == may_differ(text)
