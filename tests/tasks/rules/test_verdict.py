"""Reading a judge's reply: exactly one clear decision, or an error; never a guess."""

import json
import math
import re
from contextlib import suppress
from dataclasses import FrozenInstanceError
from functools import partial

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tasks.rules.verdict import (
    TERNARY,
    Verdict,
    VerdictError,
    confidence_of,
    json_object,
    parse_group,
    parse_verdict,
    reply_format,
    status_of,
)

MET = Verdict("met", 1.0, "")
PARTIAL = Verdict("partial", 0.5, "")
UNMET = Verdict("unmet", 0.0, "")

parse_binary = partial(parse_verdict, grading="binary")

GOOD: dict[str, tuple[str, Verdict]] = {
    "an object as text in the explanation": (
        r'{"explanation": "says {\"criteria_met\": true}", "criteria_met": false}',
        Verdict("unmet", 0.0, 'says {"criteria_met": true}'),
    ),
    "a fence in white space": ('\n```json \n{"criteria_met": true}\n```\n', MET),
    "thinking before a fence": (
        '<think>{"criteria_met": false}</think>\n```json\n{"criteria_met": true}\n```',
        MET,
    ),
    "another key": ('{"criteria_met": true, "confidence": 0.5}', MET),
    "a tag in the explanation behind thinking": (
        '<think>so</think>{"explanation": "a </think> <reason>x</reason>", "criteria_met": true}',
        Verdict("met", 1.0, "a </think> <reason>x</reason>"),
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_a_clear_reply_is_read(case):
    reply, verdict = GOOD[case]

    assert parse_binary(reply) == verdict


BAD = {
    "nothing": "",
    "an object in its place": '{"criteria_met": {"value": true}}',
    "one level down": '{"verdict": {"criteria_met": true}}',
    "a list": '[{"criteria_met": true}]',
    "cut off": '{"explanation": "It is true that',
    "the key twice": '{"criteria_met": true, "criteria_met": false}',
    "a key twice further in": '{"criteria_met": true, "x": {"a": 1, "a": 2}}',
    "text in front": 'Here it is: {"criteria_met": true}',
    "NaN": '{"criteria_met": NaN}',
    "an explanation that is a list": '{"criteria_met": true, "explanation": ["a"]}',
    "nested deep": '{"criteria_met": true, "x": '
    + "[" * 100_000
    + "]" * 100_000
    + "}",
    "a number of five thousand digits": '{"criteria_met": true, "x": '
    + "1" * 5_000
    + "}",
    "a byte order mark": '\ufeff{"criteria_met": true}',
    "prose before a closing tag": (
        'The criterion is not met. It only says: </think>{"criteria_met": true}'
    ),
    "a space that JSON does not know": '\u00a0{"criteria_met": true}',
    "a space that JSON does not know in a fence": '```json\n\u3000{"criteria_met": true}\n```',
    "a fence in a fence": '```json\n```json\n{"criteria_met": true}\n```\n```',
    "a decision inside of another value": (
        '{"criteria_met": true, "details": [{"criteria_met": false}]}'
    ),
    "an object with a NUL behind": '{"criteria_met": true}\x00',
}


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (json_object, '{"criteria_met": true}'),
        (partial(parse_group, n_criteria=1, grading="binary"), "[]"),
    ],
)
def test_text_before_a_closing_tag_is_thinking_only_if_the_server_omits_the_opening_tag(
    read, content
):
    reply = f"so</think>{content}"

    read(reply, omits_think_tag=True)

    with pytest.raises(VerdictError):
        read(reply)


@pytest.mark.parametrize("case", BAD)
def test_a_reply_that_is_no_clear_decision_is_an_error(case):
    with pytest.raises(VerdictError) as caught:
        parse_binary(BAD[case])

    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 200


CHARACTERS = st.characters(exclude_categories=["Cs"])
EXPLANATIONS = st.text(CHARACTERS, max_size=60) | st.sampled_from(
    [
        "```",
        "\n```\n",
        "<think>",
        "</think>",
        '{"criteria_met": false}',
        "\\",
        '"',
        "\u2028",
    ]
)
FENCES = st.sampled_from(
    ["{}", " {}\n", "```json\n{}\n```", "```\n{}\n```", "```JSON\r\n{}\r\n```\n"]
)


@given(
    met=st.booleans(),
    explanation=EXPLANATIONS,
    fence=FENCES,
    is_ascii=st.booleans(),
    indent=st.none() | st.just(2),
)
def test_json_is_read_back(met, explanation, fence, is_ascii, indent):
    content = {"explanation": explanation, "criteria_met": met}
    reply = fence.replace(
        "{}", json.dumps(content, ensure_ascii=is_ascii, indent=indent)
    )

    verdict = parse_binary(reply)

    assert verdict.value == float(met)
    assert verdict.explanation == explanation


PIECES = (
    '{"criteria_met":',
    "true",
    "false",
    "}",
    "{",
    '"',
    ",",
    "```",
    "\n",
    "<think>",
    "</think>",
    "12",
)
KEYS = st.sampled_from(["criteria_met", "explanation", "x"])
LEAVES = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5)
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=6,
)
REPLIES = (
    st.text(max_size=80)
    | st.lists(st.sampled_from(PIECES)).map("".join)
    | DOCUMENTS.map(json.dumps)
)


@given(REPLIES)
@example("\ud800")
def test_a_text_is_an_error_or_met_where_it_holds_a_true_or_unmet_where_it_holds_a_false(
    reply,
):
    with suppress(VerdictError):
        word = {"met": "true", "unmet": "false"}[parse_binary(reply).status]
        assert word in reply


PROSE = st.text(CHARACTERS, max_size=30).filter(lambda text: text.strip(" \t\r\n"))
NAMES = st.sampled_from(
    [
        "think",
        "thinking",
        "reasoning",
        "reason",
        "THINK",
        "analysis",
        "scratchpad",
        "thin\u212a",
    ]
)
SEPARATORS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            "\n\n",
            "\u00a0",
            "\u2028",
            "\ufeff",
            "\x00",
            "---\n",
            "Reply: ",
            "// ",
            "# ",
        ]
    ),
    st.tuples(
        st.sampled_from(
            [
                "</{}>",
                "<{}>",
                "<{}>so</{}>",
                "<{} />",
                "</{} >",
                "&lt;/{}&gt;",
                "[/{}]",
            ]
        ),
        NAMES,
    ).map(lambda parts: parts[0].replace("{}", parts[1])),
)
VALID = st.tuples(
    st.sampled_from(["{}", "```json\n{}\n```", "```\n{}\n```"]), st.booleans()
).map(
    lambda parts: parts[0].replace(
        "{}", json.dumps({"explanation": "so", "criteria_met": parts[1]})
    )
)


BLOCK = re.compile(
    r"\s*<(think|thinking|reasoning|reason)>.*?</\1>", re.DOTALL | re.IGNORECASE
)
"""A whole block of thinking at the start of a reply."""


@settings(max_examples=500)
@given(PROSE, st.lists(SEPARATORS, max_size=3).map("".join), VALID)
@example(
    "The criterion is not met. It only says:", "</think>", '{"criteria_met": true}'
)
def test_prose_before_valid_json_is_no_verdict(prose, separator, valid):
    reply = prose + separator + valid
    assume(not BLOCK.match(reply))

    with pytest.raises(VerdictError):
        parse_binary(reply)


@settings(max_examples=500)
@given(PROSE, st.lists(SEPARATORS, max_size=3).map("".join), VALID)
def test_prose_between_thinking_and_valid_json_is_no_verdict(prose, separator, valid):
    with pytest.raises(VerdictError):
        parse_binary(f"<think>so</think>{prose}{separator}{valid}")


@settings(max_examples=500)
@given(VALID, st.lists(SEPARATORS | VALID, max_size=2).map("".join), PROSE | VALID)
def test_valid_json_and_then_anything_is_never_a_verdict(valid, separator, end):
    with pytest.raises(VerdictError):
        parse_binary(valid + separator + end)


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (
            'It says {"criteria_met": true}, but no.</think>\n{"criteria_met": false}',
            UNMET,
        ),
        ('{"criteria_met": true}', MET),
        (
            '{"criteria_met": true, "explanation": "quotes </think>"}',
            Verdict("met", 1.0, "quotes </think>"),
        ),
    ],
)
def test_where_the_server_omits_the_opening_tag_all_up_to_the_closing_one_is_thinking(
    reply, verdict
):
    assert parse_binary(reply, omits_think_tag=True) == verdict


@pytest.mark.parametrize(
    "reply",
    [
        'Not met. {"criteria_met": true}',
        'so</think>Not met. {"criteria_met": true}',
        "so</think>",
    ],
)
def test_where_the_server_omits_the_opening_tag_prose_is_no_verdict_either(reply):
    with pytest.raises(VerdictError):
        parse_binary(reply, omits_think_tag=True)


@pytest.mark.parametrize(
    ("explanation_chars", "explanation"),
    [(None, {"type": "string"}), (80, {"type": "string", "maxLength": 80})],
)
def test_the_requested_format_takes_exactly_the_two_keys(
    explanation_chars, explanation
):
    schema = reply_format(explanation_chars, "binary")["json_schema"]["schema"]

    assert schema["properties"] == {
        "criteria_met": {"type": "boolean"},
        "explanation": explanation,
    }
    assert sorted(schema["required"]) == ["criteria_met", "explanation"]
    assert not schema["additionalProperties"]


@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("satisfied", MET),
        (" Satisfied\n", MET),
        ("partially_satisfied", PARTIAL),
        ("PARTIALLY-SATISFIED", PARTIAL),
        ("Partially  Satisfied", PARTIAL),
        ("not_satisfied", UNMET),
        ("Not Satisfied", UNMET),
        ("not-satisfied", UNMET),
    ],
)
def test_a_word_is_read_however_its_parts_are_joined(word, verdict):
    assert parse_verdict(json.dumps({"verdict": word}), TERNARY) == verdict


@pytest.mark.parametrize(
    "word",
    [
        "",
        "_",
        "notsatisfied",
        "satisfied_not",
        "satisfied, partially satisfied",
        "satisfied.",
        "not\u00a0satisfied",
        "sat\u0131sfied",
    ],
)
def test_another_word_is_no_verdict(word):
    assert status_of(word) is None
    with pytest.raises(VerdictError):
        parse_verdict(json.dumps({"verdict": word}), TERNARY)


@pytest.mark.parametrize(
    ("parts", "grading", "confidence"),
    [
        (
            [
                ('{"', 1.0),
                ("criteria", 1.0),
                ('_met":', 0.9),
                (" true", 0.8),
                ("}", 0.7),
            ],
            "binary",
            0.8,
        ),
        (
            [
                ('{"explanation": "\\"criteria_met\\": false", "criteria_met":', 0.5),
                ("tr", 0.5),
                ("ue", 0.5),
                ("}", 1.0),
            ],
            "binary",
            0.25,
        ),
        (
            [
                ('{"verdict": "', 0.9),
                ("partially", 0.6),
                (" satisfied", 0.5),
                ('"}', 0.9),
            ],
            "ternary",
            0.3,
        ),
        (
            [
                ('{"criteria_met": ', 1.0),
                ("false", 0.1),
                (' } again: {"criteria_met": ', 1.0),
                ("true", 0.7),
                ("}", 1.0),
            ],
            "binary",
            0.7,
        ),
    ],
)
def test_confidence_is_that_of_the_decision(parts, grading, confidence):
    tokens = [(text, math.log(probability)) for text, probability in parts]

    assert confidence_of(tokens, grading) == pytest.approx(confidence)


@pytest.mark.parametrize(
    "tokens",
    [
        # No decision.
        [("I cannot say.", -0.1)],
        # A decision of another grading.
        [('{"verdict": "satisfied"}', -0.1)],
        # No token.
        [],
        # No probability.
        [('{"criteria_met": ', 0.0), ("true", -math.inf)],
        # A probability above 1.
        [('{"criteria_met": ', 0.0), ("true", 0.4)],
    ],
)
def test_without_a_probability_of_the_decision_there_is_no_confidence(tokens):
    assert confidence_of(tokens, "binary") is None


def test_a_verdict_cannot_be_changed():
    verdict = parse_binary('{"criteria_met": true}')

    with pytest.raises(FrozenInstanceError):
        verdict.status = "unmet"  # type: ignore[misc]
