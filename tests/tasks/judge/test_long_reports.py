"""Reports that are longer than a judge's context, with a provider on a real socket that refuses
longer prompts.
"""

import asyncio
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from tasks.config.job import Job
from tasks.config.settings import Drift, Limits
from tasks.drift import choose_control_set, judge_control_set
from tasks.imports.responses import import_responses
from tasks.judge.criterion import JudgedCriterion
from tasks.judge.judge import VerdictRows
from tasks.llm.request import Target, count_tokens
from tasks.plan.estimate import Planned, total_of
from tasks.plan.plan import plan
from tasks.run.writing import PartWriter, StageReport
from tests.faults.behaviours import criteria_of, criterion_of, prompt_of
from tests.faults.server import FaultServer, HttpResponse, Request
from tests.kit import endpoint, job_on, judged, prepared, rows_in, write_jsonl
from tests.tasks.benchmarks.research import research_row
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

CRITERIA = 8
CONTEXT = 8_192
PROOF = "The last word is that subject 0 says 7, with figures."
HINT = "It may be that subject 0 says 4."
TOO_LONG = HttpResponse(
    status=400,
    error={
        "message": "prompt is too long",
        "type": "x",
        "param": None,
        "code": None,
    },
)
SECTION = (
    "## Section {0}\n\n" + "Paragraph {0} tells at length of other matters, with {0} sources. " * 12
)
TEXT = "\n\n".join(SECTION.format(number) for number in range(200))
REPORT = f"{TEXT[:79_900]}\n\n{HINT}\n\n{PROOF}"
"""80,000 characters; the only full evidence for a criterion is the last paragraph."""
SHORT = f"A short report. {PROOF}"


def loaded_encoding() -> Any:
    count_tokens(Target("hosted_vllm/judge"), "")  # sets the folder of the tokenizers
    return tiktoken.get_encoding("cl100k_base")


@dataclass
class Judge:
    """A judge with a limited context: it quotes the lines that a criterion asks for, and decides by
    what it reads.
    """

    context: int = CONTEXT
    quotes: dict[str, str] = field(default_factory=lambda: {"Says 7 ": PROOF, "Says 4 ": HINT})
    padding: str = ""
    """Evidence that it finds in every part of the report, in addition to quotes."""
    encoding: Any = field(default_factory=loaded_encoding)

    def __call__(self, request: Request, _number: int) -> HttpResponse:
        prompt = prompt_of(request)
        if len(self.encoding.encode(prompt)) > self.context:
            return TOO_LONG
        criterion = criterion_of(prompt)
        quote = next(
            (quote for title, quote in self.quotes.items() if criterion.startswith(title)), None
        )
        quotes = [quote] if quote and quote in prompt.split("\n\nCriterion, quoted")[0] else []
        if is_search(prompt):
            is_report = "of the report:" in prompt
            return HttpResponse(
                json.dumps(
                    {"evidence": quotes + ([self.padding] if self.padding and is_report else [])}
                )
            )
        word = {PROOF: "satisfied", HINT: "partially satisfied"}.get(
            "".join(quotes), "not satisfied"
        )
        return HttpResponse(json.dumps({"explanation": "as it says", "verdict": word}))


def is_search(prompt: str) -> bool:
    return prompt.startswith("You search one part")


def part_in(prompt: str) -> int:
    """The number of the part that is searched; 0 in a prompt that asks for a verdict."""
    return int(prompt.split("\nPart ")[1].partition(" ")[0]) if is_search(prompt) else 0


def searched_in(prompt: str) -> list[str]:
    """Return the searched texts of a prompt; none for a prompt that asks for a verdict."""
    return [
        quotes[1]
        for quotes in re.findall(r"\[(\d+) part\]\n(.*)\n\[\1 end of the part\]", prompt, re.DOTALL)
    ]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task, and a warehouse with a long and a short report for it."""
    folder = tmp_path_factory.mktemp("imported")
    write_jsonl(folder / "research.jsonl", [research_row(0, CRITERIA)])
    rows = [
        {
            "task": "r0",
            "model": "long",
            "response": REPORT,
        },
        {
            "task": "r0",
            "model": "short",
            "response": SHORT,
        },
    ]
    job = prepared(job_of(folder))
    import_responses(job, write_jsonl(folder / "responses.jsonl", rows))
    Warehouse(job.warehouse).publish()
    return folder


def job_of(folder: Path, *judges: Mapping[str, Any]) -> Job:
    given = {
        "judges": list(judges),
        "limits": {"attempts": 1},
        "quality": {"criteria_per_task": "warn"},
    }
    return job_on(folder / "research.jsonl", folder / "w", benchmark="researchrubrics", **given)


@dataclass
class World:
    """A provider with a judge, and a folder with a warehouse."""

    folder: Path
    server: FaultServer
    judge: Judge
    planned: Planned | None = None
    notes: frozenset[str] = frozenset()

    def job(self, **judge: Any) -> Job:
        return job_of(
            self.folder,
            endpoint("judge", self.server.api_base, **{"context_tokens": CONTEXT, **judge}),
        )

    def judged(self, **judge: Any) -> StageReport:
        self.server.behaviour = self.judge
        return judged(self.job(**judge))

    def rows(self, query: str) -> list[dict[str, Any]]:
        return rows_in(self.folder / "w", query)

    def verdicts(self, model: str = "long") -> dict[str, dict[str, Any]]:
        quotes = self.rows(
            "select title, v.* from verdicts as v inner join criteria using (criterion_id) where"
            f" model = '{model}'"
        )
        return {row["title"][:7].strip(): row for row in quotes}

    def evidence(self, criterion: str) -> list[dict[str, Any]]:
        verdict_id = self.verdicts()[criterion]["verdict_id"]
        return self.rows(
            f"select * from evidence where verdict_id = '{verdict_id}' order by round, chunk_number"
        )

    def prompts(self) -> list[str]:
        return list(map(prompt_of, self.server.book))

    def searches(self, criterion: str = "Says ") -> list[str]:
        return [
            each
            for each in self.prompts()
            if is_search(each) and criterion_of(each).startswith(criterion)
        ]


@contextmanager
def world_in(folder: Path, imported: Path) -> Iterator[World]:
    shutil.copytree(imported, folder)
    with pytest.MonkeyPatch.context() as patched, FaultServer() as server:
        patched.setenv("OPENAI_API_KEY", "none")
        yield World(folder, server, Judge())


@pytest.fixture
def world(imported: Path, tmp_path: Path) -> Iterator[World]:
    """Nothing is judged yet."""
    with world_in(tmp_path / "world", imported) as world:
        yield world


@pytest.fixture(scope="module")
def done(imported: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Everything is judged."""
    with world_in(tmp_path_factory.mktemp("done") / "world", imported) as world:
        world.planned = total_of(planned := plan(world.job()))
        world.notes = frozenset(each.note for each in planned)
        report = world.judged()
        assert report.rows == 2 * CRITERIA
        assert report.failures == {}
        yield world


def test_what_stands_in_the_last_paragraph_of_a_long_report_decides(done: World) -> None:
    statuses = {key: row["status"] for key, row in done.verdicts().items()}
    assert statuses == dict.fromkeys(statuses, "unmet") | {"Says 7": "met", "Says 4": "partial"}

    last_calls = [
        each for each in done.prompts() if not is_search(each) and "too long to be shown" in each
    ]
    assert len(last_calls) == CRITERIA
    assert sum(PROOF in each for each in last_calls) == 1
    assert not any("Paragraph" in each for each in last_calls)


def test_every_character_is_in_one_part_for_each_criterion_and_every_prompt_leaves_room(
    done: World,
) -> None:
    n_chunks = len(done.searches("Says 7 "))
    assert n_chunks > 2
    for number in range(CRITERIA):
        assert "".join(searched_in(each)[0] for each in done.searches(f"Says {number} ")) == REPORT
    assert len(done.searches()) == n_chunks * CRITERIA
    assert {row["attempts"] for row in done.verdicts().values()} == {n_chunks + 1}
    assert all(
        len(done.judge.encoding.encode(prompt)) <= CONTEXT * 3 // 4 for prompt in done.prompts()
    )


def test_a_report_that_fits_takes_one_call_for_each_criterion(done: World) -> None:
    assert sum(SHORT in prompt for prompt in done.prompts()) == CRITERIA
    assert {row["attempts"] for row in done.verdicts("short").values()} == {1}
    assert done.verdicts("short")["Says 7"]["status"] == "met"
    assert (
        done.rows(
            "select 1 from evidence inner join responses using (response_id) where model = 'short'"
        )
        == []
    )


def test_the_plan_counts_the_calls_of_parts(done: World) -> None:
    assert done.planned is not None
    assert done.planned.calls == len(done.prompts())
    assert done.notes == {"its price is unknown; set its `price`"}
    sent = sum(len(done.judge.encoding.encode(prompt)) for prompt in done.prompts())
    assert done.planned.prompt_tokens == pytest.approx(sent, rel=0.15)


def test_the_plan_of_a_judge_of_groups_counts_pieces_that_fit_and_else_the_calls_of_parts(
    world: World,
) -> None:
    def listed(request: Request, number: int) -> HttpResponse:
        prompt = prompt_of(request)
        if is_search(prompt):
            return world.judge(request, number)
        met = [text.startswith("Says 7 ") and PROOF in prompt for text in criteria_of(prompt)]
        words = ["satisfied" if each else "not satisfied" for each in met]
        return HttpResponse(
            json.dumps(
                [
                    {
                        "number": n,
                        "explanation": "so",
                        "verdict": word,
                    }
                    for n, word in enumerate(words, start=1)
                ]
            )
        )

    world.server.behaviour = listed
    job = world.job(criteria_per_call=4)
    planned = total_of(plan(job)).calls
    judged(job)
    assert planned == len(world.prompts())
    assert {
        tuple({row["n_in_call"] for row in world.verdicts(m).values()}) for m in ("long", "short")
    } == {(1,), (4,)}
    assert {
        key: row["status"] for key, row in world.verdicts().items() if row["status"] != "unmet"
    } == {"Says 7": "met"}


def test_the_first_criterion_asks_about_every_part_before_the_others_do(done: World) -> None:
    searches = [entry for entry in done.server.entries if is_search(prompt_of(entry.request))]
    n_chunks = len(done.searches("Says 0 "))
    first = searches[:n_chunks]
    others = searches[n_chunks:]
    assert list(range(1, n_chunks + 1)) == [part_in(prompt_of(entry.request)) for entry in first]
    assert {criterion_of(prompt_of(entry.request))[:6] for entry in first} == {"Says 0"}
    assert all(
        (entry.responded_at_s or 0) <= min(each.arrived_at_s for each in others) for entry in first
    )


def test_the_evidence_of_every_part_is_stored(done: World) -> None:
    rows = done.evidence("Says 7")
    n_chunks = len(done.searches("Says 7 "))

    assert [row["chunk_number"] for row in rows] == list(range(1, n_chunks + 1))
    assert (
        "".join(REPORT[row["first_char"] : row["first_char"] + row["n_chars"]] for row in rows)
        == REPORT
    )
    assert [row["evidence"] for row in rows] == [[]] * (n_chunks - 1) + [[PROOF]]
    assert {(row["round"], row["n_chunks"], row["status"]) for row in rows} == {(1, n_chunks, "ok")}
    assert all(row["prompt_tokens"] > 0 for row in rows)
    assert done.rows("select count(*) as n from evidence") == [{"n": n_chunks * CRITERIA}]


def test_a_part_that_fails_is_the_verdict_s_failure_and_the_next_run_asks_for_it_alone(
    world: World,
) -> None:
    judge = world.judge
    is_well = []

    def stammers(request: Request, number: int) -> HttpResponse:
        prompt = prompt_of(request)
        is_struck = (
            criterion_of(prompt).startswith("Says 7 ") and part_in(prompt) == 2 and not is_well
        )
        return HttpResponse("words") if is_struck else judge(request, number)

    world.server.behaviour = stammers
    assert judged(world.job()).failures == {"parse_error": 1}
    failed = world.verdicts()["Says 7"]
    assert failed["status"] == "parse_error"
    assert failed["value"] is None
    assert failed["attempts"] == 3
    assert failed["error"].startswith("chunk 2 of ")
    assert [
        (row["chunk_number"], row["status"], row["evidence"]) for row in world.evidence("Says 7")
    ] == [
        (1, "ok", []),
        (2, "parse_error", None),
    ]

    is_well.append(True)
    before = len(world.prompts())
    assert judged(world.job()).failures == {}
    n_chunks = len(world.searches("Says 6 "))
    assert world.verdicts()["Says 7"]["status"] == "met"
    assert [part_in(prompt) for prompt in world.prompts()[before:]] == [*range(2, n_chunks + 1), 0]
    assert {row["status"] for row in world.evidence("Says 7")} == {"ok"}


def test_no_verdict_is_on_disk_before_its_evidence(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[str]()
    write = Warehouse.write
    job = world.job()

    def noted(warehouse: Warehouse, table_name: str, rows: Any) -> str | None:
        written.append(table_name)
        return write(warehouse, table_name, rows)

    monkeypatch.setattr(Warehouse, "write", noted)
    judged(job)
    assert written == ["evidence", "verdicts"]
    assert world.rows("select count(distinct verdict_id) as n from evidence") == [{"n": CRITERIA}]


def test_the_control_set_is_judged_part_by_part_too_and_its_evidence_kept(world: World) -> None:
    world.judged()
    job = world.job()
    watched = job.settings.model_copy(update={"drift": Drift(verdicts=2 * CRITERIA)})
    night = job.model_copy(update={"settings": watched, "night": "2026-11-22"})
    choose_control_set(night)
    n_before = world.rows("select count(*) as n from evidence")[0]["n"]
    asyncio.run(judge_control_set(night))

    assert world.rows(
        "select count(*) as n from control_verdicts inner join control_set using (set_id,"
        " response_id, criterion_id) where value = first_value"
    ) == [{"n": 2 * CRITERIA}]
    again = "evidence inner join control_verdicts using (verdict_id)"
    assert world.rows(f"select count(*) as n from {again} where evidence.status = 'ok'") == [
        {"n": n_before}
    ]


def test_a_judge_of_unknown_context_says_itself_what_is_too_long(world: World) -> None:
    assert world.judged(context_tokens=None).failures == {}
    assert world.verdicts()["Says 7"]["status"] == "met"
    refused = [entry for entry in world.server.entries if entry.status == 400]
    assert (
        len(refused)
        == sum(criterion_of(prompt_of(entry.request)).startswith("Says 0") for entry in refused)
        <= 3
    )
    (quotes,) = world.rows(
        "select n_chunks, count(*) as n from evidence where status = 'ok' group by all"
    )
    assert quotes["n"] == quotes["n_chunks"] * CRITERIA


def test_a_request_that_leaves_no_room_is_a_failure_that_says_what_to_set(world: World) -> None:
    world.judge.context = 100
    assert world.judged(context_tokens=500).failures == {"context_length": 2 * CRITERIA}
    assert world.prompts() == []
    assert "set `context_tokens`" in world.verdicts()["Says 7"]["error"]


def test_evidence_that_is_too_long_is_searched_again(world: World) -> None:
    world.judge.padding = "Much was found here. " * 450
    assert world.judged().failures == {}
    assert world.verdicts()["Says 7"]["status"] == "met"
    rounds = world.rows(
        "select round, count(distinct verdict_id) as n from evidence group by round order by round"
    )
    assert rounds == [{"round": 1, "n": CRITERIA}, {"round": 2, "n": CRITERIA}]
    last = [each for each in world.prompts() if not is_search(each) and "Notes 1 of" in each]
    assert len(last) == CRITERIA


def test_evidence_that_no_round_makes_shorter_is_a_failure(world: World) -> None:
    # The judge repeats every searched text, word for word.
    world.server.behaviour = lambda request, _: HttpResponse(
        json.dumps({"evidence": searched_in(prompt_of(request))})
    )
    assert judged(world.job()).failures["context_length"] == CRITERIA
    assert "round 2 left" in world.verdicts()["Says 7"]["error"]


def test_a_run_that_ends_before_its_rows_are_on_disk_pays_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = VerdictRows.write
    calls = iter(range(4))

    def dies(rows: VerdictRows, verdict: JudgedCriterion) -> None:
        if verdict.searches and next(calls, None) is None:
            raise RuntimeError("killed")
        write(rows, verdict)

    with monkeypatch.context() as patched:
        patched.setattr(VerdictRows, "write", dies)
        patched.setattr(PartWriter, "flush", lambda _: None)
        world.server.behaviour = world.judge
        job = world.job()
        one_by_one = job.settings.model_copy(update={"limits": Limits(attempts=1, concurrency=1)})
        with pytest.raises(ExceptionGroup):  # when it dies, no other call is in flight
            judged(job.model_copy(update={"settings": one_by_one}))
    assert world.rows("select 1 from evidence") == []
    assert len(world.searches()) > CRITERIA * 2

    assert world.judged().rows == 2 * CRITERIA
    assert world.verdicts()["Says 7"]["status"] == "met"
    assert {entry.number for entry in world.server.entries} == {0}
    assert world.rows("select count(distinct verdict_id) as n from evidence") == [{"n": CRITERIA}]


def test_batches_hold_what_a_judge_can_read_and_calls_do_the_rest(world: World) -> None:
    without = world.judged(mode="batch")
    assert without.skipped == CRITERIA
    assert without.failures == {}
    assert any(
        f"{CRITERIA} verdicts on long responses need live calls" in each
        for each in without.warnings
    )
    report = world.judged(mode="batch", allow_live=True)
    assert report.failures == {}
    batched = [
        prompt_of(entry.request) for entry in world.server.entries if entry.path == "/v1/batches"
    ]
    assert len(batched) == CRITERIA
    assert all(SHORT in prompt for prompt in batched)
    assert world.verdicts()["Says 7"]["status"] == "met"
