"""Data Docs: pages that load nothing, run nothing, and show hostile text as text."""

import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expectations import Checked, Outcome, page_name, run_suite, write_docs
from expectations.rendering import Section
from tasks.rules.records import Invariant
from tests.expectations.pages import Read, read

HOSTILE = (
    "<script>document.title = 'gone'</script>",
    "</section></main><script src='https://evil.example/a.js'></script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1) attributeName=x></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>body { display: none }</style><base href='https://evil.example/'>",
    "<meta http-equiv='refresh' content='0;url=https://evil.example/'>",
    "<a href='javascript:alert(1)'>here</a>",
    "[here](javascript:alert(1)) ![there](https://evil.example/a.png)",
    "' onmouseover='alert(1)' x=\"",
    "<!-- --><b>bold</b><!--",
    "$column ${values} $$PARAMETER $",
    "{{ 7 * 7 }} {% include 'page.j2' %} {{section_id}}",
    "&lt;i&gt; &amp; &#60;",
)
AT = datetime(2026, 11, 22, 12, 0, 1, tzinfo=UTC)
POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"


def rule(kind: str, column: str = "value", frame: str = "things", **arguments: Any) -> Invariant:
    arguments = {"column": column, **arguments}
    return Invariant("thing_known", "ingest", frame, kind, arguments, "quarantine", "a <thing> is right")


def things(*values: Any, keys: tuple[str, ...] = ()) -> pd.DataFrame:
    keys = keys or tuple(f"key-{i}" for i in range(len(values)))
    return pd.DataFrame({"key": keys, "task_id": keys, "note": [f"note on {key}" for key in keys], "value": values})


def outcome_of(frame: pd.DataFrame, *rules: Invariant) -> Outcome:
    return run_suite("ingest", rules or (rule("in", values=["good"]),), lambda name: frame)


def checked(frame: str = "things", **changes: Any) -> Checked:
    facts = {"run_id": "a-run", "checked_at": AT, "n_rows": 3, "n_expectations": 1, "n_failed": 1}
    return Checked("ingest", frame, **{**facts, **changes})


def written(folder: Path, outcome: Outcome, **changes: Any) -> Mapping[str, str]:
    """The files of a folder with the page of one outcome."""
    pages = {(outcome.suite, frame): sections for frame, sections in outcome.pages.items()}
    write_docs(folder, "a <subject>", [checked(frame, **changes) for frame in outcome.pages], pages)
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Pages on rows whose keys, notes and values are attacks."""
    frame = things(*HOSTILE, keys=tuple(f"{text} as key" for text in HOSTILE))
    return written(tmp_path_factory.mktemp("docs"), outcome_of(frame), run_id=HOSTILE[0])


@pytest.fixture(scope="module")
def page(attacked: Mapping[str, str]) -> Read:
    return read(attacked["ingest-things.html"])


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_keys_and_notes_are_shown_as_they_are(page: Read, text: str) -> None:
    assert text in page.text
    assert f"{text} as key" in page.text
    assert f"note on {text}" in page.text


def test_a_page_holds_nothing_that_runs_or_loads(attacked: Mapping[str, str]) -> None:
    for name in ("index.html", "ingest-things.html"):
        found = read(attacked[name])

        assert set() == found.elements & {"script", "style", "img", "svg", "math", "iframe", "object", "base", "form"}
        assert [] == [each for each, _ in found.attributes if each.startswith("on") or each == "style"]
        assert {"style.css", "data:,"} == {v for v in found.values("href", "src") if v.endswith(".css") or ":" in v}


def test_a_page_leads_only_to_the_report_the_index_its_neighbours_and_itself(attacked: Mapping[str, str]) -> None:
    leads = {link for name in ("index.html", "ingest-things.html") for link in read(attacked[name]).values("href")}
    own = {"data:,", "style.css", "index.html", "ingest-things.html", "../index.html", "#content"}

    assert own == {link for link in leads if not link.startswith("#section-")}


def test_every_link_within_a_page_has_its_place(page: Read) -> None:
    within = {link.removeprefix("#") for link in page.values("href") if link.startswith("#")}

    assert within == page.values("id")
    assert {"content", "section-1", "section-2"} == within


def test_a_page_forbids_what_it_does_not_need(attacked: Mapping[str, str]) -> None:
    assert POLICY in read(attacked["index.html"]).values("content")
    assert POLICY in read(attacked["ingest-things.html"]).values("content")


def test_styles_load_nothing(attacked: Mapping[str, str]) -> None:
    assert [] == [word for word in ("url(", "@import", "http") if word in attacked["style.css"]]


def test_texts_of_this_project_are_escaped_too(attacked: Mapping[str, str]) -> None:
    assert "a <subject>" in read(attacked["index.html"]).text
    assert HOSTILE[0] in read(attacked["index.html"]).text
    assert "a <thing> is right (thing_known, policy quarantine)" in read(attacked["ingest-things.html"]).text


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_text_is_shown_as_it_is(values: list[str]) -> None:
    frame = things(*(f"<{value}" for value in values), keys=tuple(f"{value}>" for value in values))
    found = read("".join(section.content for section in outcome_of(frame).pages["things"]))

    assert [] == [value for value in values if f"<{value}" not in found.text or f"{value}>" not in found.text]


def test_the_page_says_what_great_expectations_says() -> None:
    frame = things(1, 2, 30)
    found = read(outcome_of(frame, rule("between", min_value=1, max_value=10)).pages["things"][1].content)

    assert "values must be greater than or equal to 1.0 and less than or equal to 10.0" in " ".join(found.text.split())
    assert "1 unexpected values found" in found.text
    assert "key-2" in found.text


KINDS = (
    (rule("between", min_value=1, max_value=9), 7, 0, "less than or equal to 9.0"),
    (rule("at_least", min_value=1), 7, 0, "greater than or equal to 1.0"),
    (rule("not_null"), 7, None, "values must never be null"),
    (rule("in", values=["<i>"]), "<i>", "<b>", "values must belong to this set: <i>"),
    (rule("not_in", values=["<b>"]), "<i>", "<b>", "values must not belong to this set: <b>"),
    (rule("matches", regex="^(?<!x)a$"), "a", "<b>", "values must match this regular expression: ^(?<!x)a$"),
)


@pytest.mark.parametrize(("wanted", "good", "bad", "words"), KINDS, ids=[each[0].kind for each in KINDS])
def test_every_kind_of_expectation_is_shown_with_whether_it_holds(
    wanted: Invariant, good: Any, bad: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    for value, status in ((good, "passed"), (bad, "failed")):
        text = " ".join(read(outcome_of(things(good, value), wanted).pages["things"][1].content).text.split())

        assert words in text
        assert status == text.split("Observed Value ")[1].split()[0]
    assert [] == [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_frame_without_rows_has_a_page_that_says_so(tmp_path: Path) -> None:
    files = written(tmp_path, outcome_of(things()), n_rows=0, n_failed=0)

    assert "There were no rows to look at" in files["ingest-things.html"]
    assert "no rows" in read(files["index.html"]).text


def test_many_failing_rows_are_a_sample_and_say_so() -> None:
    frame = things(*["bad"] * 10_001)
    found = read(outcome_of(frame).pages["things"][1].content)

    assert "Sampled Unexpected Values" in found.text
    assert re.search("10,?001 unexpected values found", found.text)
    assert len(found.text) < 3_000


def test_the_same_rows_at_the_same_time_give_the_same_bytes(tmp_path: Path) -> None:
    frame = things("a", "b", "b", "good", None)
    first, second = (written(tmp_path / name, outcome_of(frame.copy())) for name in ("first", "second"))

    assert first == second


def test_times_are_told_in_utc_wherever_they_were_taken(tmp_path: Path) -> None:
    elsewhere = AT.astimezone(timezone(timedelta(hours=9)))
    files = written(tmp_path, outcome_of(things()), checked_at=elsewhere)

    assert "Checked 2026-11-22 12:00:01 UTC" in files["ingest-things.html"]
    assert "2026-11-22 12:00:01" in files["index.html"]


def test_pages_that_are_not_given_stay_and_are_listed(tmp_path: Path) -> None:
    written(tmp_path, outcome_of(things("first")))
    section = Section("Overview", "<p>later</p>")
    listed = [checked(), checked("others"), checked("unwritten")]
    write_docs(tmp_path, "a subject", listed, {("ingest", "others"): [section]})
    index = read((tmp_path / "index.html").read_text())

    assert "first" in (tmp_path / page_name("ingest", "things")).read_text()
    assert {"ingest-things.html", "ingest-others.html"} <= index.values("href")
    assert "unwritten (no page yet)" in index.text


def test_what_a_killed_process_left_behind_goes(tmp_path: Path) -> None:
    (tmp_path / ".0123.tmp").write_text("half a pa")

    assert {"index.html", "ingest-things.html", "style.css"} == set(written(tmp_path, outcome_of(things("bad"))))


def test_a_reader_never_sees_half_a_page(tmp_path: Path) -> None:
    pages = [{("ingest", "things"): [Section("Overview", f"<p>{letter * 200_000}</p>")]} for letter in "ab"]
    write_docs(tmp_path, "a subject", [checked()], pages[0])
    seen: list[str] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen.append((tmp_path / "ingest-things.html").read_text())

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(20):
        write_docs(tmp_path, "a subject", [checked()], pages[number % 2])
    is_over.set()
    reader.join()

    assert seen
    assert [] == [text[-20:] for text in seen if not text.endswith("</html>\n")]
    assert [] == [text[:20] for text in seen if ("a" * 9 in text) == ("b" * 9 in text)]
