"""What counts as labels in a reply of an annotator, and what does not."""

import json
from typing import Any

import pytest

from tasks.analyses.annotate import read_labels, reply_format
from tasks.rules.verdict import VerdictError

LABELS = ("Capital & Funding", "Other", "Planning & Forecasts")


def read(answer: object, most: int = 2) -> Any:
    return read_labels(answer if isinstance(answer, str) else json.dumps(answer), LABELS, most)


@pytest.mark.parametrize("secondary", [[], ["Other"], ["Other", "Planning & Forecasts"]])
def test_known_labels_are_columns_of_the_row(secondary: list[str]) -> None:
    answer = {"explanation": "why", "primary": "Capital & Funding", "secondary": secondary}
    expected = {"primary_label": "Capital & Funding", "secondary_labels": secondary, "explanation": "why"}

    assert read(answer) == expected
    assert read(f"```json\n{json.dumps(answer)}\n```") == expected


@pytest.mark.parametrize(("answer", "reason"), [
    ({"primary": "capital & funding", "secondary": []}, "is no label"),
    ({"primary": None, "secondary": []}, "is no label"),
    ({"secondary": ["Other"]}, "is no label"),
    ({"primary": "Other", "secondary": ["Nope"]}, "'Nope' is no label"),
    ({"primary": "Other", "secondary": ["Other"]}, "named twice"),
    ({"primary": "Other", "secondary": "Capital & Funding"}, "no list"),
    ({"primary": "Other", "secondary": [], "explanation": 3}, "explanation is no text"),
    ('{"primary": "Other", "primary": "Other"}', "a key appears twice"),
    ('The label is {"primary": "Other"}', "not one JSON object"),
    ("", "not one JSON object"),
])  # fmt: skip
def test_anything_else_is_refused_with_the_reason(answer: object, reason: str) -> None:
    with pytest.raises(VerdictError, match=reason):
        read(answer)


def test_more_secondary_labels_than_allowed_are_refused() -> None:
    with pytest.raises(VerdictError, match="more than 1 secondary"):
        read({"primary": "Other", "secondary": ["Capital & Funding", "Planning & Forecasts"]}, most=1)


def test_the_schema_allows_the_listed_labels_alone_and_any_code_where_none_are_listed() -> None:
    def properties(*, is_listed: bool) -> dict[str, Any]:
        shape = reply_format(LABELS, 2, is_listed=is_listed)
        found: dict[str, Any] = shape["json_schema"]["schema"]["properties"]
        return found

    assert list(LABELS) == properties(is_listed=True)["primary"]["enum"]
    assert 2 == properties(is_listed=True)["secondary"]["maxItems"]
    assert {"type": "string"} == properties(is_listed=False)["primary"]
