"""What a verdict rests on beside the criterion's own words and the whole answer: other words, and evidence of parts."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tasks.figures.scope import task_key
from tests.kit import criterion, response, row, verdict
from tests.tasks.report.browser import visiting
from tests.tasks.report.drilldown.drilled import data, drill, store, tiny_job

pytestmark = pytest.mark.slow
ATTACK = "<img src=x onerror='window.attacked = true'>"
ASKED = f"Says it, at length. {ATTACK}"
QUOTES = [f"“It is so.” {ATTACK}", "The table says 7."]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three tasks; on the first one a judge searched an answer in parts, and another had other words."""
    folder = tmp_path_factory.mktemp("grounds")
    job = tiny_job(folder)
    answer = response("t1", "m1")
    answer["response_id"] += "/base"
    asked = criterion("t1", 0, 5.0)
    searched = verdict(answer, asked, 1.0, judge="searcher")
    rewritten = {"criterion_id": "other words", "content_hash": "other"}
    other = verdict(answer, rewritten, 0.0, judge="rewriter")
    part = {"verdict_id": searched["verdict_id"], "task_id": "t1", "response_id": answer["response_id"], "n_chunks": 2}
    store(job, {
        "verdicts": [searched, other],
        "criterion_variants": [
            row("criterion_variants", task_id="t1", rubric="augmented", title=ASKED, status="ok",
                original_id=asked["criterion_id"], original_hash=asked["content_hash"], **rewritten),
        ],
        "evidence": [
            row("evidence", **part, round=1, chunk_number=2, status="ok", evidence=QUOTES),
            row("evidence", **part, round=1, chunk_number=1, status="ok", evidence=[]),
            row("evidence", **part | {"n_chunks": 1}, round=2, chunk_number=1, status="parse_error", evidence=None),
        ],
    })  # fmt: skip
    drill(job, folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def grounds(site: Path) -> list[dict[str, Any]]:
    """Those of the first task."""
    held = data(site)
    assert not any(part.get("grounds") for name in ("t2", "t3") for part in held[f"task-{task_key(name)}"].values())
    return [each for part in held[f"task-{task_key('t1')}"].values() for each in part.get("grounds", [])]


def test_evidence_is_kept_by_chunk_with_failures_and_words_as_asked(grounds: list[dict[str, Any]]) -> None:
    found = sorted((each["position"], each["asked"] or "", len(each["chunks"])) for each in grounds)
    (chunks,) = (each["chunks"] for each in grounds if each["chunks"])

    assert [(0, "", 3), (0, ASKED, 0)] == found
    assert [(1, 1, "ok", []), (1, 2, "ok", QUOTES), (2, 1, "parse_error", None)] == [
        (each["round"], each["chunk"], each["status"], each["found"]) for each in chunks
    ]


def test_a_page_shows_them_as_text_below_the_verdict(browser: Browser, site: Path) -> None:
    with visiting(browser, site) as visit:
        visit.open(f"task.html#task={task_key('t1')}")
        visit.page.locator("details.evidence summary").click()
        shown = visit.page.locator("details.evidence").inner_text()

        assert f"asked as {ASKED}" == visit.page.locator(".explanation:has(.tag)").inner_text()
        assert "Searched in 3 chunks, something found in 1" in shown
        assert all(quote in shown for quote in QUOTES)
        named = visit.page.locator(".evidence dt").all_inner_texts()
        assert ["Chunk 1 of 2", "Chunk 2 of 2", "Round 2, notes 1 of 1"] == named
        assert ["nothing", *QUOTES, "parse error"] == visit.page.locator(".evidence li").all_inner_texts()
        assert visit.faults == []


def test_a_cascades_verdict_says_which_judge_decided_and_why(browser: Browser, tmp_path: Path) -> None:
    job = tiny_job(tmp_path)
    answer = response("t1", "m1")
    answer["response_id"] += "/base"
    asked = criterion("t1", 0, 5.0)
    store(job, {
        "verdicts": [
            verdict(answer, asked, 1.0, judge="careful", decided_by=f"strong {ATTACK}",
                    escalated_because=["weight", "confidence_unknown"]),
            verdict(answer, asked, 1.0, judge="quick", decided_by="cheap"),
        ],
    })  # fmt: skip
    drill(job, tmp_path / "site")

    with visiting(browser, tmp_path / "site") as visit:
        visit.open(f"task.html#task={task_key('t1')}")
        said = visit.page.locator(".explanation:has(.tag)").all_inner_texts()
        assert {
            f"decided by strong {ATTACK}, because of weight, confidence unknown", "decided by cheap",
        } == set(said)  # fmt: skip
        assert visit.faults == []
