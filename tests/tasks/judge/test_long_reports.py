"""Reports that are longer than a judge's context, with a provider on a real socket that refuses
longer prompts.
"""

import asyncio
import json
import re
import shutil
from collections import Counter
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
from tasks.judge.judge import VerdictWriter
from tasks.llm.request import Target, count_tokens
from tasks.plan.estimate import Planned, total_of
from tasks.plan.plan import plan
from tasks.run.writing import PartWriter, StageReport
from tests.faults.behaviours import criteria_of, criterion_of, failed, prompt_of
from tests.faults.server import FaultServer, HttpResponse
from tests.kit import (
    Row,
    endpoint,
    few_published,
    job_on,
    judged,
    prepared,
    rows_in,
    write_jsonl,
)
from tests.tasks.benchmarks.research import research_row
from tests.tasks.judge.values import distinct
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

CRITERIA = 4
CONTEXT = 8_192
PROOF = "The last word is that subject 0 says 3, with figures."
HINT = "It may be that subject 0 says 2."
TOO_LONG = failed(400, "prompt is too long")
SECTION = (
    "## Section {0}\n\n"
    + "Paragraph {0} tells at length of other matters, with {0} sources. " * 12
)
TEXT = "\n\n".join(SECTION.format(number) for number in range(200))
REPORT = f"{TEXT[:79_900]}\n\n{HINT}\n\n{PROOF}"
"""80,000 characters; the only full evidence for a criterion is the last paragraph."""
SHORT = f"A short report. {PROOF}"
NIGHT = "2026-11-22"


def loaded_encoding() -> Any:
    count_tokens(Target("hosted_vllm/judge"), "")  # sets the folder of the tokenizers
    return tiktoken.get_encoding("cl100k_base")


def evidence(*quotations: str) -> HttpResponse:
    return HttpResponse(json.dumps({"evidence": quotations}))


@dataclass
class Judge:
    """A judge with a limited context: it quotes the lines that a criterion is about, and decides by
    what it reads.
    """

    context: int = CONTEXT
    padding: str = ""
    """Evidence that it finds in every chunk of the report, in addition to a quotation."""
    encoding: Any = field(default_factory=loaded_encoding)

    def __call__(self, request, _number: int) -> HttpResponse:
        prompt = prompt_of(request)
        if self.n_tokens(prompt) > self.context:
            return TOO_LONG
        quotations = []
        for title, quotation in {"Says 3 ": PROOF, "Says 2 ": HINT}.items():
            text = prompt.partition("\n\nCriterion, quoted")[0]
            if criterion_of(prompt).startswith(title) and quotation in text:
                quotations.append(quotation)
        if is_search(prompt):
            if self.padding and "of the report:" in prompt:
                quotations.append(self.padding)
            return evidence(*quotations)
        verdict = "not satisfied"
        if PROOF in quotations:
            verdict = "satisfied"
        elif HINT in quotations:
            verdict = "partially satisfied"
        content = {"explanation": "as it says", "verdict": verdict}
        return HttpResponse(json.dumps(content))

    def n_tokens(self, text: str) -> int:
        return len(self.encoding.encode(text))


def is_search(prompt: str) -> bool:
    return prompt.startswith("You search one part")


def chunk_number(prompt: str) -> int:
    """The number of the chunk that is searched; 0 in a prompt for a verdict."""
    if not is_search(prompt):
        return 0
    return int(prompt.split("\nPart ")[1].partition(" ")[0])


def searched_text(prompt: str) -> str:
    """The chunk that is searched."""
    match = re.search(
        r"\[(\d+) part\]\n(.*)\n\[\1 end of the part\]",
        prompt,
        re.DOTALL,
    )
    assert match is not None
    return match[2]


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> Path:
    """A folder with a task, and a warehouse with a long and a short report for it."""
    folder = tmp_path_factory.mktemp("imported")
    write_jsonl(folder / "research.jsonl", [research_row(0, CRITERIA)])
    rows = [
        {"task": "r0", "model": "long", "response": REPORT},
        {"task": "r0", "model": "short", "response": SHORT},
    ]
    with few_published():
        job = prepared(job_of(folder))
        import_responses(job, write_jsonl(folder / "responses.jsonl", rows))
        Warehouse(job.warehouse).publish()
    return folder


def job_of(folder: Path, *judges: Mapping[str, Any]) -> Job:
    return job_on(
        folder / "research.jsonl",
        folder / "w",
        benchmark="researchrubrics",
        judges=list(judges),
        limits={"attempts": 1},
        quality={"criteria_per_task": "warn"},
    )


@dataclass
class World:
    """A provider with a judge, and a folder with a warehouse."""

    folder: Path
    server: FaultServer
    judge: Judge

    def job(self, **judge: Any) -> Job:
        settings = {"context_tokens": CONTEXT, **judge}
        return job_of(
            self.folder, endpoint("judge", self.server.api_base, **settings)
        )

    def judged(self, **judge: Any) -> StageReport:
        self.server.behaviour = self.judge
        return judged(self.job(**judge))

    def rows(self, query: str) -> list[Row]:
        return rows_in(self.folder / "w", query)

    def verdicts(self, model: str = "long") -> dict[str, dict[str, Any]]:
        """The verdicts on a model's report, by the first words of the criterion."""
        query = f"""
            select criteria.title, verdicts.*
            from verdicts inner join criteria using (criterion_id)
            where model = '{model}'
        """
        return {row["title"][:7].strip(): row for row in self.rows(query)}

    def statuses(self) -> dict[str, str]:
        """The status of each verdict on the long report."""
        return {title: row["status"] for title, row in self.verdicts().items()}

    def evidence(self, criterion: str) -> list[Row]:
        verdict_id = self.verdicts()[criterion]["verdict_id"]
        return self.rows(
            f"from evidence where verdict_id = '{verdict_id}' order by round, chunk_number"
        )

    def n_evidence(self) -> int:
        return len(self.rows("from evidence where status = 'ok'"))

    def prompts(self) -> list[str]:
        return [prompt_of(request) for request in self.server.book]

    def verdict_prompts(self) -> list[str]:
        return [prompt for prompt in self.prompts() if not is_search(prompt)]

    def searches(self, criterion: str = "Says ") -> list[str]:
        """The prompts that search chunks for evidence on criteria."""
        prompts = [prompt for prompt in self.prompts() if is_search(prompt)]
        return [
            prompt for prompt in prompts if criterion_of(prompt).startswith(criterion)
        ]


@contextmanager
def world_in(folder: Path, imported: Path) -> Iterator[World]:
    shutil.copytree(imported, folder)
    with pytest.MonkeyPatch.context() as patch, FaultServer() as server:
        patch.setenv("OPENAI_API_KEY", "none")
        yield World(folder, server, Judge())


@pytest.fixture
def world(imported: Path, tmp_path) -> Iterator[World]:
    """Nothing is judged yet."""
    with world_in(tmp_path / "world", imported) as world:
        yield world


@dataclass
class JudgedWorld(World):
    """Everything is judged."""

    planned: Planned
    notes: frozenset[str]


@pytest.fixture(scope="module")
def judged_world(imported: Path, tmp_path_factory) -> Iterator[JudgedWorld]:
    with world_in(tmp_path_factory.mktemp("judged") / "world", imported) as world:
        planned = plan(world.job())
        notes = frozenset(row.note for row in planned)
        with few_published():
            report = world.judged()
        assert report.rows == 2 * CRITERIA
        assert report.failures == {}
        total = total_of(planned)
        yield JudgedWorld(world.folder, world.server, world.judge, total, notes)


def test_the_last_paragraph_of_a_long_report_decides(judged_world):
    statuses = judged_world.statuses()

    assert statuses.pop("Says 3") == "met"
    assert statuses.pop("Says 2") == "partial"
    assert set(statuses.values()) == {"unmet"}


def test_the_last_call_has_the_evidence_instead_of_the_report(judged_world):
    prompts = judged_world.verdict_prompts()
    prompts = [prompt for prompt in prompts if "too long to be shown" in prompt]

    assert len(prompts) == CRITERIA
    assert sum(PROOF in prompt for prompt in prompts) == 1
    assert not any("Paragraph" in prompt for prompt in prompts)


def test_every_character_is_in_one_chunk_for_each_criterion(judged_world):
    n_chunks = len(judged_world.searches("Says 3 "))

    assert n_chunks > 2
    for number in range(CRITERIA):
        prompts = judged_world.searches(f"Says {number} ")
        assert len(prompts) == n_chunks
        assert "".join(map(searched_text, prompts)) == REPORT
    assert distinct(judged_world.verdicts().values(), "attempts") == {n_chunks + 1}


def test_every_prompt_leaves_room_for_the_reply(judged_world):
    sizes = [judged_world.judge.n_tokens(prompt) for prompt in judged_world.prompts()]

    assert max(sizes) <= CONTEXT * 3 // 4


def test_a_report_that_fits_takes_one_call_for_each_criterion(judged_world):
    verdicts = judged_world.verdicts("short")
    query = (
        "from evidence inner join responses using (response_id) where model = 'short'"
    )

    assert sum(SHORT in prompt for prompt in judged_world.prompts()) == CRITERIA
    assert distinct(verdicts.values(), "attempts") == {1}
    assert verdicts["Says 3"]["status"] == "met"
    assert judged_world.rows(query) == []


def test_the_plan_counts_the_calls_of_chunks(judged_world):
    prompts = judged_world.prompts()
    n_tokens = sum(judged_world.judge.n_tokens(prompt) for prompt in prompts)

    assert judged_world.planned.calls == len(prompts)
    assert judged_world.planned.prompt_tokens == pytest.approx(n_tokens, rel=0.15)
    assert judged_world.notes == {"its price is unknown; set its `price`"}


def test_a_judge_of_groups_gets_pieces_that_fit_and_else_each_criterion_by_chunks_as_planned(
    world,
):
    def behaviour(request, number):
        prompt = prompt_of(request)
        if is_search(prompt):
            return world.judge(request, number)
        entries = []
        for position, criterion in enumerate(criteria_of(prompt), start=1):
            is_met = criterion.startswith("Says 3 ") and PROOF in prompt
            verdict = "satisfied" if is_met else "not satisfied"
            entries.append(
                {
                    "number": position,
                    "explanation": "so",
                    "verdict": verdict,
                }
            )
        return HttpResponse(json.dumps(entries))

    world.server.behaviour = behaviour
    job = world.job(criteria_per_call=2)
    n_planned = total_of(plan(job)).calls

    judged(job)

    statuses = world.statuses()
    assert len(world.prompts()) == n_planned
    assert distinct(world.verdicts("long").values(), "n_in_call") == {1}
    assert distinct(world.verdicts("short").values(), "n_in_call") == {2}
    assert statuses.pop("Says 3") == "met"
    assert set(statuses.values()) == {"unmet"}


def test_every_chunk_is_searched_for_the_first_criterion_before_the_others(
    judged_world,
):
    entries = [
        entry
        for entry in judged_world.server.entries
        if is_search(prompt_of(entry.request))
    ]
    n_chunks = len(judged_world.searches("Says 0 "))
    prompts = [prompt_of(entry.request) for entry in entries[:n_chunks]]
    last_response_at_s = max(
        entry.responded_at_s or 0 for entry in entries[:n_chunks]
    )
    next_arrival_at_s = min(entry.arrived_at_s for entry in entries[n_chunks:])

    assert list(map(chunk_number, prompts)) == list(range(1, n_chunks + 1))
    assert {criterion_of(prompt)[:6] for prompt in prompts} == {"Says 0"}
    assert last_response_at_s <= next_arrival_at_s


def test_the_evidence_of_every_chunk_is_stored(judged_world):
    n_chunks = len(judged_world.searches("Says 3 "))

    rows = judged_world.evidence("Says 3")

    assert [row["chunk_number"] for row in rows] == list(range(1, n_chunks + 1))
    assert [row["evidence"] for row in rows] == [[]] * (n_chunks - 1) + [[PROOF]]
    assert distinct(rows, "round") == {1}
    assert distinct(rows, "n_chunks") == {n_chunks}
    assert distinct(rows, "status") == {"ok"}
    assert min(row["prompt_tokens"] for row in rows) > 0
    assert judged_world.n_evidence() == n_chunks * CRITERIA


def test_stored_chunks_join_to_the_report(judged_world):
    text = ""
    for row in judged_world.evidence("Says 3"):
        assert row["first_char"] == len(text)
        text += REPORT[row["first_char"] :][: row["n_chars"]]

    assert text == REPORT


@pytest.fixture
def failed_world(world: World) -> World:
    """A world whose judge has failed on one chunk for one criterion."""

    def behaviour(request, number):
        prompt = prompt_of(request)
        if criterion_of(prompt).startswith("Says 3 ") and chunk_number(prompt) == 2:
            return HttpResponse("words")
        return world.judge(request, number)

    world.server.behaviour = behaviour
    assert judged(world.job()).failures == {"parse_error": 1}
    return world


def test_a_chunk_that_fails_is_the_verdict_s_failure(failed_world):
    verdict = failed_world.verdicts()["Says 3"]
    first_row, second_row = failed_world.evidence("Says 3")

    assert verdict["status"] == "parse_error"
    assert verdict["value"] is None
    assert verdict["attempts"] == 3
    assert verdict["error"].startswith("chunk 2 of ")
    assert first_row["status"] == "ok"
    assert first_row["evidence"] == []
    assert second_row["status"] == "parse_error"
    assert second_row["evidence"] is None


def test_the_next_run_searches_a_failed_chunk_and_those_after_it(failed_world):
    n_before = len(failed_world.prompts())
    n_chunks = len(failed_world.searches("Says 1 "))

    report = failed_world.judged()

    prompts = failed_world.prompts()[n_before:]
    assert report.failures == {}
    assert list(map(chunk_number, prompts)) == [*range(2, n_chunks + 1), 0]
    assert failed_world.statuses()["Says 3"] == "met"
    assert distinct(failed_world.evidence("Says 3"), "status") == {"ok"}


def n_searched_criteria(world: World) -> int:
    return len(distinct(world.rows("from evidence"), "verdict_id"))


def test_no_verdict_is_on_disk_before_its_evidence(world, monkeypatch):
    table_names = []
    write = Warehouse.write

    def recording_write(warehouse, table_name, rows):
        table_names.append(table_name)
        return write(warehouse, table_name, rows)

    monkeypatch.setattr(Warehouse, "write", recording_write)

    judged(world.job())

    assert table_names == ["evidence", "verdicts"]
    assert n_searched_criteria(world) == CRITERIA


def test_the_control_set_is_judged_by_chunks_too_and_its_evidence_kept(world):
    world.judged()
    job = world.job()
    settings = job.settings.model_copy(update={"drift": Drift(verdicts=2 * CRITERIA)})
    tonight = job.model_copy(update={"settings": settings, "night": NIGHT})
    choose_control_set(tonight)
    n_before = world.n_evidence()

    asyncio.run(judge_control_set(tonight))

    agreeing = world.rows(
        "from control_verdicts inner join control_set using (set_id, response_id, criterion_id)"
        " where value = first_value"
    )
    control_evidence = world.rows(
        "from evidence inner join control_verdicts using (verdict_id) where evidence.status = 'ok'"
    )
    assert len(agreeing) == 2 * CRITERIA
    assert len(control_evidence) == n_before


def test_a_judge_of_unknown_context_says_itself_that_a_prompt_is_too_long(world):
    report = world.judged(context_tokens=None)

    refused = [
        prompt_of(entry.request)
        for entry in world.server.entries
        if entry.status == 400
    ]
    [n_chunks] = distinct(world.rows("from evidence where status = 'ok'"), "n_chunks")
    assert report.failures == {}
    assert world.statuses()["Says 3"] == "met"
    assert {criterion_of(prompt)[:6] for prompt in refused} == {"Says 0"}
    assert len(refused) <= 3
    assert world.n_evidence() == n_chunks * CRITERIA


def test_a_request_that_leaves_no_room_is_a_failure_that_says_what_to_set(world):
    world.judge.context = 100

    report = world.judged(context_tokens=500)

    assert report.failures == {"context_length": 2 * CRITERIA}
    assert world.prompts() == []
    assert "set `context_tokens`" in world.verdicts()["Says 3"]["error"]


def test_evidence_that_is_too_long_is_searched_again(world):
    world.judge.padding = "Much was found here. " * 450

    report = world.judged()

    n_by_round = world.rows(
        "select round, count(distinct verdict_id) as n from evidence group by round order by round"
    )
    assert report.failures == {}
    assert world.statuses()["Says 3"] == "met"
    assert n_by_round == [{"round": 1, "n": CRITERIA}, {"round": 2, "n": CRITERIA}]
    assert (
        sum("Notes 1 of" in prompt for prompt in world.verdict_prompts()) == CRITERIA
    )


def test_evidence_that_no_round_makes_shorter_is_a_failure(world):
    def quotes_everything(request, number):
        prompt = prompt_of(request)
        return evidence(searched_text(prompt)) if is_search(prompt) else evidence()

    world.server.behaviour = quotes_everything

    report = judged(world.job())

    assert report.failures["context_length"] == CRITERIA
    assert "round 2 left" in world.verdicts()["Says 3"]["error"]


@pytest.fixture
def killed_world(world: World) -> World:
    """A world in which a run ended after two verdicts, before any row was on disk."""
    write = VerdictWriter.write
    n_written = 0

    def write_two(rows, verdict):
        nonlocal n_written
        n_written += bool(verdict.searches)
        if n_written > 2:
            raise RuntimeError("killed")
        write(rows, verdict)

    world.server.behaviour = world.judge
    job = world.job()
    one_by_one = job.settings.model_copy(
        update={"limits": Limits(attempts=1, concurrency=1)}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VerdictWriter, "write", write_two)
        patch.setattr(PartWriter, "flush", lambda _: None)
        with pytest.raises(
            ExceptionGroup
        ):  # when it dies, no other call is in flight
            judged(job.model_copy(update={"settings": one_by_one}))
    assert world.rows("from evidence") == []
    assert len(world.searches()) > CRITERIA * 2
    return world


def test_a_run_that_ends_before_its_rows_are_on_disk_pays_once(killed_world):
    report = killed_world.judged()

    assert report.rows == 2 * CRITERIA
    assert killed_world.statuses()["Says 3"] == "met"
    assert {entry.number for entry in killed_world.server.entries} == {0}
    assert n_searched_criteria(killed_world) == CRITERIA


def test_a_batch_has_no_calls_on_long_responses(world):
    report = world.judged(mode="batch")

    warning = f"{CRITERIA} verdicts on long responses need live calls"
    prompts = world.prompts()
    assert report.skipped == CRITERIA
    assert report.failures == {}
    assert any(warning in line for line in report.warnings)
    assert {entry.path for entry in world.server.entries} == {"/v1/batches"}
    assert len(prompts) == CRITERIA
    assert all(SHORT in prompt for prompt in prompts)


def test_a_judge_of_batches_that_allows_live_calls_judges_long_responses_by_them(
    world,
):
    report = world.judged(mode="batch", allow_live=True)

    paths = Counter(entry.path for entry in world.server.entries)
    assert report.failures == {}
    assert paths["/v1/batches"] == CRITERIA
    assert world.statuses()["Says 3"] == "met"
