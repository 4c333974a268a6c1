"""The grounds of a verdict: prompt and reply, rewritten criteria, evidence from chunks; and a task
without messages.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tasks.benchmarks.prbench import BENCHMARK
from tasks.figures.addresses import task_key
from tasks.llm.replies import Reply
from tasks.prompts import load_template
from tasks.rules.text.characters import visible
from tasks.rules.verdict import reminder
from tasks.run.judge_configs import hash_of_template
from tests.kit import (
    Rows,
    add_calls,
    admitted,
    call_entry,
    combined,
    job_on,
    row,
    verdict,
    write_jsonl,
)
from tests.tasks.report.browser import Visit, visiting
from tests.tasks.report.drilldown.drilled import (
    drill,
    key_of,
    posed,
    response_rows_of,
    rubric,
    store,
    tiny_job,
)

pytestmark = pytest.mark.usefixtures("only_leaderboard")
TEMPLATE = load_template("default", BENCHMARK.gradings[BENCHMARK.grading])
RESPONSE = (
    'Grüße, 😀\u2028 "quoted" \\ \x7f <<rubric_item>> <img src=x onerror="window.attacked = 1">'
    + "\n\nMore." * 300
)
REPLY = (
    '{"explanation": "<script>window.attacked = 1</script>", "criteria_met": true}'
)
FIRST_TASK = f"task.html#task={task_key('t1')}"
SECOND_TASK = f"task.html#task={task_key('t2')}"


def responses_to(conversation: str, name: str) -> Rows:
    """The fourth model's response to a conversation of the first task, with its verdicts."""
    tables = response_rows_of(
        ["t1"],
        "m4",
        suffix=f"/{name}",
        conversation_id=conversation,
        text=f"The {name} response.",
    )
    for verdict_row in tables["verdicts"]:
        verdict_row["explanation"] = f"On the {name} response."
    return tables


@pytest.fixture(scope="module")
def exchange_site(tmp_path_factory) -> Path:
    """The drill-down of two tasks; a judge with the shipped template judged a long response to the
    first, the second has no message yet.

    A second model responded to an earlier conversation of the first task; the judge did not reply
    on the third model's response; the fourth model responded to both conversations.
    """
    folder = tmp_path_factory.mktemp("exchanges")
    # A job needs a file for its revision; the tasks come from the rows below.
    job = job_on(
        write_jsonl(folder / "tiny.jsonl", ["not read"]), folder / "warehouse"
    )
    silent = response_rows_of(["t1"], "m3")
    for verdict_row in silent["verdicts"]:
        verdict_row |= {"status": "timeout", "value": None}
    tables = combined(
        response_rows_of(["t1"], "m1", text=RESPONSE),
        response_rows_of(["t1"], "m2", conversation_id="an earlier one"),
        silent,
        responses_to("an earlier one", "older"),
        responses_to("a-conversation", "newer"),  # the current one of the kit's rows
    )
    for verdict_row in tables["verdicts"]:
        verdict_row["template_hash"] = hash_of_template(TEMPLATE, BENCHMARK)
    turn = row(
        "conversation_turns",
        task_id="t2",
        position=0,
        prompt="Is it so?",
        reference_texts=["It says 7."],
        response="It is.",
    )
    unassembled = {"criteria": rubric("t2"), "conversation_turns": [turn]}
    tasks = admitted(["t1", "t2"], n_criteria=2)
    store(job, combined(tasks, posed("t1"), unassembled, tables))
    cell = tables["verdicts"][0]["verdict_id"]
    # The second reply is to a reminder.
    for number, text in enumerate(("no JSON", REPLY)):
        entry = call_entry(
            f"call-{number}",
            cell=cell,
            reply=Reply("ok", text),
            finished_at_s=1e9 + number,
        )
        add_calls(job, entry)
    return drill(job, folder / "site")


@pytest.fixture
def visit(exchange_site: Path, browser: Browser) -> Iterator[Visit]:
    """A visit that must end without faults."""
    with visiting(browser, exchange_site) as opened:
        yield opened
        assert opened.faults == []


def parts_of_exchange(visit: Visit) -> dict[str, str | None]:
    """Return the texts of the first opened exchange, by their titles."""
    exchange = visit.locator(".exchange").first
    exchange.locator("summary").click()
    exchange.locator("h4").first.wait_for()
    titles = exchange.locator("h4").all_inner_texts()
    texts = [text.text_content() for text in exchange.locator("h4 + *").all()]
    return dict(zip(titles, texts, strict=True))


def test_a_prompt_is_shown_as_its_template_and_the_values_of_its_placeholders(visit):
    visit.open(FIRST_TASK)

    parts = parts_of_exchange(visit)

    conversation = "<<conversation>>, message"
    assert parts["Template of the prompt"] == TEMPLATE
    assert parts[f"{conversation} 1 of 2: user"] == "Why t1?"
    assert parts[f"{conversation} 2 of 2: assistant, the response"] == visible(
        RESPONSE
    )
    assert parts["<<rubric_item>>"] == "t1 needs point 0"
    assert "digits of a hash of the conversation" in (parts["<<marker>>"] or "")
    assert "digits of a hash of the criterion" in (
        parts["<<criterion_marker>>"] or ""
    )


def test_the_placeholders_of_a_template_are_in_bold(visit):
    visit.open(FIRST_TASK)

    parts_of_exchange(visit)

    template = visit.locator(".exchange pre").first
    names = template.locator("strong").all_inner_texts()
    assert names == re.findall("<<[a-z_]+>>", TEMPLATE)


def test_a_reply_is_shown_word_for_word_after_an_unreadable_one_and_the_reminder(
    visit,
):
    visit.open(FIRST_TASK)

    parts = parts_of_exchange(visit)

    assert list(parts.items())[-3:] == [
        ("First reply, which could not be read", "no JSON"),
        ("Reminder, sent after prompt and first reply", reminder("binary")),
        ("Reply, as the judge wrote it", REPLY),
    ]


def test_each_judged_criterion_has_an_exchange(visit):
    visit.open(FIRST_TASK)

    assert visit.locator(".exchange").count() == 2


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
def test_a_page_says_what_became_of_prompt_and_reply(visit, model, selector, text):
    visit.open(f"{FIRST_TASK}&a={key_of(model)}")
    visit.locator(".exchange summary").first.click()

    assert text in visit.locator(selector).first.inner_text()


def test_a_page_that_another_host_serves_shows_the_prompt(visit):
    # Over plain http the browser offers no digests.
    script = "Object.defineProperty(crypto, 'subtle', {value: undefined})"
    visit.page.add_init_script(script)
    visit.open(FIRST_TASK)

    parts = parts_of_exchange(visit)

    assert parts["Template of the prompt"] == TEMPLATE


def test_a_conversation_is_shown_before_it_is_assembled(visit):
    visit.open(SECOND_TASK)

    turns = visit.locator("#conversation .turn").all_inner_texts()

    texts = [turn.split("\n", 1)[1].strip() for turn in turns]
    assert texts == ["Is it so?", "It says 7.", "It is."]
    assert "not assembled" in visit.locator("#conversation").inner_text()


@pytest.mark.parametrize(
    ("search", "task_ids"),
    [
        ("words=t1-c1", ["t1"]),
        ("words=grüße more.&responses=on", ["t1"]),
        ("words=grüße", []),  # responses are searched only on demand
    ],
)
def test_tasks_are_searched_in_criteria_and_responses(visit, search, task_ids):
    visit.open(f"tasks.html#{search}")

    links = visit.locator("#tasks .tabulator-row .tabulator-frozen a")
    assert links.all_inner_texts() == task_ids


ATTACK = "<img src=x onerror='window.attacked = true'>"
REWRITTEN_TITLE = f"Says it, at length. {ATTACK}"
QUOTES = [f"“It is so.” {ATTACK}", "The table says 7."]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """On the first task a judge searched chunks, and another used a rewritten criterion; cascades
    judged the second.
    """
    first_response, second_response = response_rows_of(["t1", "t2"], "m1")[
        "responses"
    ]
    criterion = rubric("t1")[0]
    second_criterion = rubric("t2")[0]
    searched = verdict(first_response, criterion, 1.0, judge="searcher")
    rewritten = {"criterion_id": "other words", "content_hash": "other"}
    cascaded = verdict(
        second_response,
        second_criterion,
        1.0,
        judge="careful",
        decided_by=f"strong {ATTACK}",
        escalated_because=["weight", "confidence_unknown"],
    )
    variant = row(
        "criterion_variants",
        task_id="t1",
        rubric="augmented",
        title=REWRITTEN_TITLE,
        status="ok",
        original_id=criterion["criterion_id"],
        original_hash=criterion["content_hash"],
        **rewritten,
    )
    evidence = []
    for search_round, number, n_chunks, quotes in (
        (1, 2, 2, QUOTES),
        (1, 1, 2, []),
        (2, 1, 1, None),
    ):
        evidence_row = row(
            "evidence",
            verdict_id=searched["verdict_id"],
            task_id="t1",
            response_id=first_response["response_id"],
            round=search_round,
            chunk_number=number,
            n_chunks=n_chunks,
            status="parse_error" if quotes is None else "ok",
            evidence=quotes,
        )
        evidence.append(evidence_row)
    verdicts = [
        searched,
        verdict(first_response, rewritten, 0.0, judge="rewriter"),
        cascaded,
        verdict(
            second_response,
            second_criterion,
            1.0,
            judge="quick",
            decided_by="cheap",
        ),
    ]
    tables = {
        "verdicts": verdicts,
        "criterion_variants": [variant],
        "evidence": evidence,
    }
    folder = tmp_path_factory.mktemp("grounds")
    job = tiny_job(folder, ["t1", "t2"], ["m1"], further=tables)
    return drill(job, folder / "site")


def test_evidence_is_shown_as_text_below_the_verdict(browser, site):
    with visiting(browser, site) as visit:
        visit.open(FIRST_TASK)
        visit.locator("details.evidence summary").click()

        terms = visit.locator(".evidence dt").all_inner_texts()
        assert terms == ["Chunk 1 of 2", "Chunk 2 of 2", "Round 2, notes 1 of 1"]
        descriptions = visit.locator(".evidence dd").all_inner_texts()
        assert descriptions == ["nothing", "\n".join(QUOTES), "parse error"]
        text = visit.locator("details.evidence").inner_text()
        assert "Searched in 3 chunks, something found in 1" in text
        assert visit.faults == []


def test_a_verdict_on_a_rewritten_criterion_shows_its_words(browser, site):
    with visiting(browser, site) as visit:
        visit.open(FIRST_TASK)

        text = visit.locator(".explanation:has(.tag)").inner_text()
        assert text == f"asked as {REWRITTEN_TITLE}"
        assert visit.faults == []


def test_a_cascades_verdict_says_which_judge_decided_and_why(browser, site):
    with visiting(browser, site) as visit:
        visit.open(SECOND_TASK)

        texts = visit.locator(".explanation:has(.tag)").all_inner_texts()
        assert sorted(texts) == [
            "decided by cheap",
            f"decided by strong {ATTACK}, because of weight, confidence unknown",
        ]
        assert visit.faults == []
