"""Evidence: what is asked, what is read as an answer, and what the last call is shown."""

from typing import Any

import pytest

from tasks.prompts import load_evidence_template
from tasks.rules.evidence import evidence_format, evidence_prompt, parse_evidence, shown
from tasks.rules.verdict import VerdictError

GOOD = {
    "nothing": ('{"evidence": []}', ()),
    "quotes": ('{"evidence": ["It says so.", "Table 2 says 7."]}', ("It says so.", "Table 2 says 7.")),
    "fenced": ('```json\n{"evidence": ["a"]}\n```', ("a",)),
    "behind thinking": ('<think>{"evidence": []}</think>{"evidence": ["a"]}', ("a",)),
    "blank texts": ('{"evidence": ["", " \\n", " a "]}', ("a",)),
    "a cut emoji": ('{"evidence": ["\\ud83d"]}', ("\ufffd",)),
}


@pytest.mark.parametrize("case", GOOD)
def test_a_list_of_texts_is_read(case: str) -> None:
    reply, expected = GOOD[case]
    assert expected == parse_evidence(reply)


@pytest.mark.parametrize("reply", [
    "", "nothing found", "[]", '{"evidence": "It says so."}', '{"evidence": [7]}', '{"evidence": null}', "{}",
    '{"evidence": ["a", ["b"]]}', '{"evidence": ["a"]} and more', '{"evidence": [], "evidence": ["a"]}',
    '{"criteria_met": true}', '{"evidence": ["a"',
])  # fmt: skip
def test_anything_else_is_no_evidence_and_not_the_absence_of_it(reply: str) -> None:
    with pytest.raises(VerdictError):
        parse_evidence(reply)


def test_the_shape_has_room_for_whole_quotes_where_it_is_bounded_at_all() -> None:
    def statements(*, is_bounded: bool) -> dict[str, Any]:
        shape: dict[str, Any] = evidence_format(is_bounded=is_bounded)["json_schema"]["schema"]
        found: dict[str, Any] = shape["properties"]["evidence"]
        return found

    assert {"type": "array", "items": {"type": "string"}} == statements(is_bounded=False)
    bounded = statements(is_bounded=True)
    assert (bounded["items"]["maxLength"], bounded["maxItems"]) >= (1_000, 50)


def test_a_chunk_stands_whole_between_the_request_and_the_criterion_and_fills_no_place() -> None:
    template = load_evidence_template("evidence_v1", "")
    chunk = 'He wrote "<<rubric_item>>" and <<conversation>>.\n'
    prompt = evidence_prompt(
        template, [("user", "Why?")], "Says why.", text=chunk, number=2, n_chunks=3, round_=1
    )  # fmt: skip

    assert prompt.index("user: Why?") < prompt.index("Part 2 of 3 of the report") < prompt.index(chunk)
    assert prompt.index(chunk) < prompt.index("Says why.")
    assert prompt.count("Says why.") == 1


def test_what_is_shown_names_every_chunk_and_holds_every_quote() -> None:
    text = shown([("first",), (), ("second", "third\nline")], 3, 1)

    assert "All 3 parts" in text
    assert text.endswith("Part 1 of 3:\n- first\n\nPart 2 of 3: nothing found\n\nPart 3 of 3:\n- second\n- third\nline")


def test_notes_on_notes_still_say_how_many_chunks_the_report_has() -> None:
    text = shown([("a",), ("b",)], 7, 2)
    assert "All 7 parts" in text
    assert "Notes 2 of 2:\n- b" in text
