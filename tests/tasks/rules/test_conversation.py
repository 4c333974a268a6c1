"""Conversations: references in front, templates filled in one pass, thinking removed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.conversation import (
    CONVERSATION,
    CRITERION,
    PLACEHOLDERS,
    build_messages,
    fill,
    final_text,
    missing_placeholders,
    unknown_opening,
)
from tasks.rules.records import Turn


def turn(prompt: str | None, response: str | None = None, *references: str) -> Turn:
    return Turn(prompt, references, response)


# building


def test_a_conversation_is_user_and_assistant_in_turn_without_a_system_prompt():
    messages = build_messages([turn("a", "b"), turn("c", None, "R")])

    assert messages == (
        ("user", "a"),
        ("assistant", "b"),
        ("user", "Reference Text 0:\nR\n\nc"),
    )


@pytest.mark.parametrize("blank", [None, "", " \n\t"])
def test_a_blank_slot_has_no_message(blank):
    messages = build_messages([turn("a", blank), turn("b"), turn(blank)])

    assert messages == (("user", "a"), ("user", "b"))


# templates

TEXTS = (
    st.text(st.sampled_from("<>_ab\n\\"), max_size=20)
    | st.sampled_from(PLACEHOLDERS)
    | st.text(max_size=20)
)


@given(TEXTS, TEXTS)
def test_a_filled_template_is_its_parts_with_the_texts_between(
    conversation, criterion
):
    template = f"one{CRITERION}two{CONVERSATION}three"

    filled = fill(template, {CONVERSATION: conversation, CRITERION: criterion})

    assert filled == f"one{criterion}two{conversation}three"


@pytest.mark.parametrize(
    ("template", "placeholders"),
    [
        (f"C: {CONVERSATION}\nI: {CRITERION}\nagain: {CRITERION}", []),
        (CONVERSATION, [CRITERION]),
        (CRITERION, [CONVERSATION]),
        ("<conversation>", [CONVERSATION, CRITERION]),
    ],
)
def test_the_placeholders_that_a_template_lacks_are_listed(template, placeholders):
    assert missing_placeholders(template, PLACEHOLDERS) == placeholders


# replies

TAGS = ("think", "thinking", "thought", "reasoning", "reason", "seed:think")


@pytest.mark.parametrize(
    "name",
    [spelling(tag) for tag in TAGS for spelling in (str, str.upper, str.title)],
)
def test_thinking_is_taken_away_under_every_tag(name):
    assert final_text(f"<{name}>first\n\nthen</{name}>\nThe reply.") == "The reply."


REPLIES = {
    "no thinking": ("The reply.", "The reply."),
    "behind white space": (" \n<think>x</think>The reply.", "The reply."),
    "in the middle": ("One <think>x</think>two.", "One <think>x</think>two."),
    "twice": (
        "<think>x</think>One <reason>y</reason>two.",
        "One <reason>y</reason>two.",
    ),
    "a closing tag that nothing opened": (
        "first this</think>The reply.",
        "first this</think>The reply.",
    ),
    "a closing tag in the reply": (
        "<think>x</think>Write </think> at the end.",
        "Write </think> at the end.",
    ),
    "never ended after white space": (" \n<thinking>first this", ""),
    "ended by another tag": ("<think>first this</reason>The reply.", ""),
    "its own tag named in it": (
        "<think>I write <think> first</think>The reply.",
        "The reply.",
    ),
    "nested in another": (
        "<reasoning>a<think>b</think>c</reasoning>The reply.",
        "The reply.",
    ),
    "empty": ("", ""),
    "a tag with an attribute": ('<think a="b">x', '<think a="b">x'),
    "other tags": (
        "<b>The</b> <thinker>reply</thinker>.",
        "<b>The</b> <thinker>reply</thinker>.",
    ),
    "a tag in letters that look alike": (
        "<thin\u212a>x</thin\u212a>y",
        "<thin\u212a>x</thin\u212a>y",
    ),
    "letters that grow when made small": (
        "<think>\u0130\u0130</THINK>The reply.",
        "The reply.",
    ),
    "nothing that a reader sees": (
        "<think>x</think>\u200b\u00ad\u3164\x00\u202e",
        "",
    ),
    "its opening tag omitted": (
        "omitted: first this</think>The reply.",
        "The reply.",
    ),
    "another tag omitted": (
        "omitted: first this</reasoning>\nThe reply.",
        "The reply.",
    ),
    "an opening tag after all": (
        "<think>omitted: first </reason> this</think>The reply.",
        "The reply.",
    ),
    "a second closing tag": (
        "omitted: first</think>Write </think>.",
        "Write </think>.",
    ),
    "nothing but thinking, its tag omitted": ("omitted: first this</think>", ""),
}


@pytest.mark.parametrize("case", REPLIES)
def test_the_final_text_is_the_reply_without_its_thinking(case):
    text, expected = REPLIES[case]

    # If a server omits the opening tag, everything up to the closing tag is thinking.
    assert final_text(text, omits_think_tag="omitted: " in text) == expected


@given(
    st.text(st.characters(exclude_characters="<"), max_size=20),
    st.sampled_from(TAGS),
    st.text(max_size=20),
)
def test_a_text_that_does_not_start_with_thinking_is_kept_whole(text, tag, end):
    reply = f".{text}</{tag}>{end}."

    assert without_line_breaks(final_text(reply)) == without_line_breaks(reply)


def without_line_breaks(text: str) -> str:
    return text.replace("\n", "").replace("\r", "")


ANALYSIS = "<|channel|>analysis<|message|>Is it <b>a debt</b>?"
FORMATS = {
    "gpt-oss": (
        f"{ANALYSIS}<|end|><|start|>assistant<|channel|>final<|message|>The <|end|>"
        " reply.<|return|>"
    ),
    "gpt-oss from its start": (
        f"<|start|>assistant{ANALYSIS}<|end|><|start|>assistant<|channel|>final<|message|>"
        "The <|end|> reply."
    ),
    "gpt-oss with a comment": (
        f"{ANALYSIS}<|end|><|start|>assistant<|channel|>commentary<|message|>So.<|end|>"
        "<|start|>assistant<|channel|>final <|constrain|>json<|message|>The <|end|> reply.<|end|>"
    ),
    "gpt-oss without thinking": "<|channel|>final<|message|>The <|end|> reply.<|return|>",
    "gpt-oss without its marks": (
        "analysisIs it a debt?assistantcommentarySo.assistantfinalThe <|end|> reply."
    ),
    "Mistral": "[THINK]Is it a debt?[/THINK]The <|end|> reply.",
    "Kimi": "◁think▷Is it a debt?◁/think▷The <|end|> reply.",
    "Gemma": "<|channel>thought\nIs it a debt?<channel|>The <|end|> reply.",
    "Cohere": (
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>The <|end|> reply.<|END_RESPONSE|>"
    ),
    "OpenThinker": (
        "<|begin_of_thought|>Hm.<|end_of_thought|>\n<|begin_of_solution|>The <|end|> reply."
        "<|end_of_solution|>"
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_thinking_in_the_format_of_a_model_is_taken_away(name):
    assert final_text(FORMATS[name]) == "The <|end|> reply."
    assert unknown_opening(final_text(FORMATS[name])) is None


@pytest.mark.parametrize(
    "text",
    [
        ANALYSIS,
        "[THINK]Is it",
        "<seed:think>Is it</think>",
        "<|START_THINKING|>Is it",
    ],
)
def test_thinking_in_the_format_of_a_model_that_never_ends_leaves_nothing(text):
    assert final_text(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "<p>The reply</p>",
        "<?xml version='1.0'?><contract/>",
        "<!doctype html>",
        "<thinker>reply</thinker>",
        "analysis of the contract",
        "analysis: it is <b>void</b>",
        "[1] See below.",
        "[Thinking] about it",
        "<|x|>a",
        "<result>The reply</result>",
        "<reason >x</reason >",
        "◁b▷",
        "A <|channel|>final<|message|> in a text",
        "<analysis>It is void.</analysis>The reply",
        "<scratchpad>x</scratchpad>y",
    ],
)
def test_a_reply_that_begins_with_any_other_tag_stays_as_it_is(text):
    assert final_text(text) == text


@pytest.mark.parametrize(
    ("text", "opening"),
    [
        ("<scratchpad>x</scratchpad>y", "<scratchpad>"),
        (" <|inner_thoughts|>x", "<|inner_thoughts|>"),
        ("<my-reasoning>x", "<my-reasoning>"),
        ('<think budget="9">x', '<think budget="9">'),
        ("<analysis>x</analysis>y", "<analysis>"),
        ("<p>x</p>", None),
        ("<result>x", None),
        ("Think about it.", None),
        ("<table><tr>", None),
        ("", None),
        ("I <think> so", None),
    ],
)
def test_an_unknown_opening_that_looks_like_thinking_is_returned(text, opening):
    assert unknown_opening(text) == opening


BREAKS = {
    "a\nb": "a\nb",
    "a\n\nb": "a\n\nb",
    "a\n\n\nb": "a\n\nb",
    "a" + "\n" * 50 + "b": "a\n\nb",
    "a\r\n\r\nb": "a\r\n\r\nb",
    "a\r\n\r\n\r\nb": "a\n\nb",
    "a\n\n\nb\n\n\nc": "a\n\nb\n\nc",
    "\n\n\n a \n\n\n": "a",
    "<think>x</think>\n\n\na\n\n\n\nb": "a\n\nb",
}


@pytest.mark.parametrize("text", BREAKS)
def test_three_or_more_line_breaks_become_two(text):
    assert final_text(text) == BREAKS[text]


OPENINGS = [f"<{tag}>" for tag in TAGS]
CLOSINGS = [f"</{tag}>" for tag in TAGS]
PIECES = st.sampled_from([*OPENINGS, *CLOSINGS, "<", ">", "\n", "x ", "</", "y"])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_nothing_is_added_to_a_reply(text):
    assert Counter(final_text(text)) <= Counter(text)


@pytest.mark.parametrize(
    "piece",
    [
        "<|channel|>",
        "<|end|>",
        "[THINK]",
        "analysisx",
        " ",
        "<think>",
        "</think>",
        "<think></reason>",
        "<reason>x</reason>",
        "<",
        "\n\n\n",
        "\r",
    ],
)
def test_a_hostile_text_costs_no_more_than_a_long_one(piece):
    # Quadratic time on a text of this length would take longer than the timeout.
    assert len(final_text(piece * 200_000)) <= 200_000 * len(piece)
