"""Other wordings of a criterion: examples removed by a rule, or detail added by a model and
checked.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.variants import read_augmented, without_examples
from tasks.rules.verdict import VerdictError

PLAIN = "Names three rivers of the basin."


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (
            "Names rivers (e.g., Elbe, Havel) of the basin.",
            "Names rivers of the basin.",
        ),
        ("Names rivers (e.g. Elbe).", "Names rivers."),
        (
            "Names rivers(e.g., (1) the Elbe (north), (2) the Havel), and lakes (such as X).",
            "Names rivers, and lakes.",
        ),
        ("Names rivers (For example: Elbe) twice (eg, Havel)", "Names rivers twice"),
        (
            "Says what (i.e., how much) and (2023).",
            "Says what (i.e., how much) and (2023).",
        ),
        (
            "Names rivers (e.g., Elbe and never ends.",
            "Names rivers (e.g., Elbe and never ends.",
        ),
        ("Names (the rivers (e.g., Elbe) of) it.", "Names (the rivers of) it."),
        ("States the cost (including VAT).", "States the cost (including VAT)."),
        ("(e.g., the Elbe).", "(e.g., the Elbe)."),
        ("Names rivers. (e.g., Elbe).", "Names rivers."),
        ("Names rivers (e.g., Elbe) .", "Names rivers."),
        ("Names rivers (e.g., Elbe) , lakes.", "Names rivers, lakes."),
        (PLAIN, PLAIN),
    ],
)
def test_examples_in_parentheses_are_taken_out_and_nothing_else(title, expected):
    assert without_examples(title) == expected


@given(st.text(alphabet="abc (),.e.g:1\n", max_size=60))
def test_taking_out_examples_only_ever_removes_and_a_second_time_changes_nothing(
    title,
):
    result = without_examples(title)

    letters = iter(title)
    assert all(letter in letters for letter in result), "a letter is not in its place"
    assert without_examples(result) == result or "(" in result


def test_a_criterion_in_more_words_is_taken():
    text = "Names three rivers of the basin: by name, and with 3 different ones."
    reply = json.dumps({"criterion": f" {text}\n"})

    assert read_augmented(reply, PLAIN) == text


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        ("Names three rivers.", "not one JSON object"),
        (json.dumps({"text": "x"}), "criterion is not a text"),
        (json.dumps({"criterion": " "}), "criterion is not a text"),
        (json.dumps({"criterion": PLAIN}), "no more than the original"),
        (json.dumps({"criterion": "Names rivers. " * 90}), "times as long"),
    ],
)
def test_what_is_no_more_detailed_criterion_is_refused_with_its_cause(reply, cause):
    with pytest.raises(VerdictError, match=cause):
        read_augmented(reply, PLAIN)


def test_a_more_detailed_criterion_must_keep_each_number():
    text = "Gives the share in the year that was asked for, in percent."

    with pytest.raises(VerdictError, match=r"lost 2\.5"):
        read_augmented(json.dumps({"criterion": text}), "Gives 2.5 % for 2024.")
