"""The basis of a verdict: prompt and reply, rewritten criteria, evidence from chunks; and a task
without messages.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tasks.benchmarks.prbench import BENCHMARK
from tasks.config.job import Job
from tasks.figures.addresses import entry_key, task_key
from tasks.llm.ledger.entries import Entry
from tasks.llm.replies import Reply
from tasks.prompts import load_template
from tasks.rules.text.characters import visible
from tasks.rules.verdict import reminder
from tasks.run.judge_configs import hash_of_template
from tests.kit import (
    admitted,
    combined,
    criterion,
    job_on,
    recorded,
    response,
    row,
    verdict,
    write_jsonl,
)
from tests.tasks.report.browser import Visit, visiting
from tests.tasks.report.drilldown.drilled import drill, response_rows_of, rubric, store, tiny_job

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_leaderboard")]
TEMPLATE = load_template("default", BENCHMARK.gradings[BENCHMARK.grading])
_ODD = 'Grüße, 😀\u2028 "quoted" \\ \x7f <<rubric_item>> <img src=x onerror="window.attacked = 1">'
RESPONSE = _ODD + "\n\nMore." * 300
REPLY = '{"explanation": "<script>window.attacked = 1</script>", "criteria_met": true}'


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two tasks; a judge with the shipped template judged a long response to the first, the second
    has no message yet.

    A second model responded to an earlier conversation of the first task; the judge did not reply
    on the third model's response; the fourth model responded to both conversations.
    """
    folder = tmp_path_factory.mktemp("exchanges")
    job = job_on(write_jsonl(folder / "tiny.jsonl", ["not read"]), folder / "warehouse")
    older, newer = (
        response_rows_of(["t1"], "m4", conversation_id=of, text=f"The {index} response.")
        for index, of in (("older", "an earlier one"), ("newer", "a-conversation"))
    )
    for index, rows in (("older", older), ("newer", newer)):
        for each in (*rows["responses"], *rows["verdicts"]):
            each["response_id"] += f"/{index}"
        for each in rows["verdicts"]:
            each |= {
                "verdict_id": f"{each['verdict_id']}/{index}",
                "explanation": f"On the {index} response.",
            }
    silent = response_rows_of(["t1"], "m3")
    for each in silent["verdicts"]:
        each |= {"status": "timeout", "value": None}
    tables = combined(
        response_rows_of(["t1"], "m1", text=RESPONSE),
        response_rows_of(["t1"], "m2", conversation_id="an earlier one"),
        silent,
        older,
        newer,
    )
    for each in tables["verdicts"]:
        each["template_hash"] = hash_of_template(TEMPLATE, BENCHMARK)
    turns = [("t1", "Why t1?", [], None), ("t2", "Is it so?", ["It says 7."], "It is.")]
    store(
        job,
        tables
        | admitted(["t1", "t2"], n_criteria=2)
        | {
            "criteria": [*rubric("t1"), *rubric("t2")],
            "message_rows": [
                row(
                    "message_rows",
                    task_id="t1",
                    position=0,
                    role="user",
                    content="Why t1?",
                )
            ],
            "conversation_turns": [
                row(
                    "conversation_turns",
                    task_id=task_id,
                    position=0,
                    prompt=prompt,
                    reference_texts=texts,
                    response=chat,
                )
                for task_id, prompt, texts, chat in turns
            ],
        },
    )
    cell = tables["verdicts"][0]["verdict_id"]
    for n, text in enumerate(("no JSON", REPLY), start=1):  # the second reply is to a reminder
        recorded(
            job,
            Entry(f"call-{n}", 1, cell, "a-run", "m", "", "{}", Reply("ok", text), True, 1e9 + n),
        )
    drill(job, job.warehouse.parent / "site")
    return job


@pytest.fixture
def visit(job: Job, browser: Browser) -> Iterator[Visit]:
    """A visit that must end without faults."""
    with visiting(browser, job.warehouse.parent / "site") as visit:
        yield visit
        assert visit.faults == []


def parts_of_exchange(visit: Visit) -> dict[str, str | None]:
    """Return the texts of the first opened exchange, by their titles."""
    exchange = visit.page.locator(".exchange").first
    exchange.locator("summary").click()
    exchange.locator("h4").first.wait_for()
    titles = exchange.locator("h4").all_inner_texts()
    texts = [text.text_content() for text in exchange.locator("h4 + *").all()]
    return dict(zip(titles, texts, strict=True))


def test_a_prompt_is_shown_as_its_template_and_the_values_of_its_placeholders(
    visit: Visit,
) -> None:
    visit.open(f"task.html#task={task_key('t1')}")

    parts = parts_of_exchange(visit)

    conversation = "<<conversation>>, message"
    assert parts["Template of the prompt"] == TEMPLATE
    assert parts[f"{conversation} 1 of 2: user"] == "Why t1?"
    assert parts[f"{conversation} 2 of 2: assistant, the response"] == visible(RESPONSE)
    assert parts["<<rubric_item>>"] == rubric("t1")[0]["title"]
    assert "digits of a hash of the conversation" in (parts["<<marker>>"] or "")
    assert "digits of a hash of the criterion" in (parts["<<criterion_marker>>"] or "")


def test_the_placeholders_of_a_template_are_in_bold(visit: Visit) -> None:
    visit.open(f"task.html#task={task_key('t1')}")

    parts_of_exchange(visit)

    names = visit.page.locator(".exchange pre").first.locator("strong").all_inner_texts()
    assert names == re.findall("<<[a-z_]+>>", TEMPLATE)


def test_a_reply_is_shown_word_for_word_after_an_unreadable_one_and_the_reminder(
    visit: Visit,
) -> None:
    visit.open(f"task.html#task={task_key('t1')}")

    parts = parts_of_exchange(visit)

    assert list(parts.items())[-3:] == [
        ("First reply, which could not be read", "no JSON"),
        ("Reminder, sent after prompt and first reply", reminder("binary")),
        ("Reply, as the judge wrote it", REPLY),
    ]


def test_each_judged_criterion_has_an_exchange(visit: Visit) -> None:
    visit.open(f"task.html#task={task_key('t1')}")

    assert visit.page.locator(".exchange").count() == len(rubric("t1"))


@pytest.mark.parametrize(
    ("model", "selector", "text"),
    [
        ("m2", ".response .notice", "earlier version of the conversation"),
        ("m2", ".exchange .empty", "prompt is not kept"),
        ("m3", ".exchange .empty", "No reply came"),
        ("m3", ".exchange pre:nth-of-type(3)", "m3 says t1."),
        # If a trial has two responses, the one to the current conversation is shown.
        ("m4", ".response .body", "The newer response."),
        ("m4", ".explanation", "On the newer response."),
    ],
)
def test_a_page_says_what_became_of_prompt_and_reply(
    visit: Visit, model: str, selector: str, text: str
) -> None:
    key = entry_key(
        {
            "model": model,
            "model_config_hash": "a-configuration",
            "vintage": "base",
        }
    )
    visit.open(f"task.html#task={task_key('t1')}&a={key}")
    visit.page.locator(".exchange summary").first.click()

    assert text in visit.page.locator(selector).first.inner_text()


def test_a_page_that_another_host_serves_shows_the_prompt(visit: Visit) -> None:
    # Over plain http the browser offers no digests.
    visit.page.add_init_script("Object.defineProperty(crypto, 'subtle', {value: undefined})")
    visit.open(f"task.html#task={task_key('t1')}")

    parts = parts_of_exchange(visit)

    assert parts["Template of the prompt"] == TEMPLATE


def test_the_question_is_there_before_it_is_assembled(visit: Visit) -> None:
    visit.open(f"task.html#task={task_key('t2')}")
    turns = visit.page.locator("#conversation .turn")

    assert [text.split("\n", 1)[1].strip() for text in turns.all_inner_texts()] == [
        "Is it so?",
        "It says 7.",
        "It is.",
    ]
    assert "not assembled" in visit.page.locator("#conversation").inner_text()


@pytest.mark.parametrize(
    ("where", "words", "expected"),
    [
        ("", "t1-c1", ["t1"]),
        ("&responses=on", "grüße more.", ["t1"]),
        ("", "grüße", []),
    ],
)
def test_tasks_are_found_by_criteria_and_responses(
    visit: Visit, where: str, words: str, expected: list[str]
) -> None:
    visit.open(f"tasks.html#words={words}{where}")

    assert (
        visit.page.locator("#tasks .tabulator-row .tabulator-frozen a").all_inner_texts()
        == expected
    )


ATTACK = "<img src=x onerror='window.attacked = true'>"
PROMPTED = f"Says it, at length. {ATTACK}"
QUOTES = [f"“It is so.” {ATTACK}", "The table says 7."]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the first task a judge searched chunks, and another used a rewritten criterion; cascades
    judged the second.
    """
    folder = tmp_path_factory.mktemp("grounds")
    job = tiny_job(folder)
    stored, second = (
        response(each, "m1") | {"response_id": f"{each}/m1/1/base"} for each in ("t1", "t2")
    )
    wanted = criterion("t1", 0, 5.0)
    of_second = criterion("t2", 0, 5.0)
    searched = verdict(stored, wanted, 1.0, judge="searcher")
    rewritten = {"criterion_id": "other words", "content_hash": "other"}
    part = {
        "verdict_id": searched["verdict_id"],
        "task_id": "t1",
        "response_id": stored["response_id"],
        "n_chunks": 2,
    }
    store(
        job,
        {
            "verdicts": [
                searched,
                verdict(stored, rewritten, 0.0, judge="rewriter"),
                verdict(
                    second,
                    of_second,
                    1.0,
                    judge="careful",
                    decided_by=f"strong {ATTACK}",
                    escalated_because=["weight", "confidence_unknown"],
                ),
                verdict(second, of_second, 1.0, judge="quick", decided_by="cheap"),
            ],
            "criterion_variants": [
                row(
                    "criterion_variants",
                    task_id="t1",
                    rubric="augmented",
                    title=PROMPTED,
                    status="ok",
                    original_id=wanted["criterion_id"],
                    original_hash=wanted["content_hash"],
                    **rewritten,
                ),
            ],
            "evidence": [
                row(
                    "evidence",
                    **part,
                    round=1,
                    chunk_number=2,
                    status="ok",
                    evidence=QUOTES,
                ),
                row(
                    "evidence",
                    **part,
                    round=1,
                    chunk_number=1,
                    status="ok",
                    evidence=[],
                ),
                row(
                    "evidence",
                    **part | {"n_chunks": 1},
                    round=2,
                    chunk_number=1,
                    status="parse_error",
                    evidence=None,
                ),
            ],
        },
    )
    return drill(job, folder / "site")


def test_a_page_shows_them_as_text_below_the_verdict(browser: Browser, site: Path) -> None:
    with visiting(browser, site) as visit:
        visit.open(f"task.html#task={task_key('t1')}")
        visit.page.locator("details.evidence summary").click()
        shown = visit.page.locator("details.evidence").inner_text()

        assert f"asked as {PROMPTED}" == visit.page.locator(".explanation:has(.tag)").inner_text()
        assert "Searched in 3 chunks, something found in 1" in shown
        assert all(quote in shown for quote in QUOTES)
        named = visit.page.locator(".evidence dt").all_inner_texts()
        assert named == ["Chunk 1 of 2", "Chunk 2 of 2", "Round 2, notes 1 of 1"]
        quoted = visit.page.locator(".evidence dd").all_inner_texts()
        assert ["nothing", "\n".join(QUOTES), "parse error"] == quoted
        assert visit.faults == []


def test_a_cascades_verdict_says_which_judge_decided_and_why(browser: Browser, site: Path) -> None:
    with visiting(browser, site) as visit:
        visit.open(f"task.html#task={task_key('t2')}")

        shown = visit.page.locator(".explanation:has(.tag)").all_inner_texts()
        assert {
            f"decided by strong {ATTACK}, because of weight, confidence unknown",
            "decided by cheap",
        } == {*shown}
        assert visit.faults == []
