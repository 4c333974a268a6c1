"""What must hold for responses, in every benchmark."""

from functools import partial

from expectations.expectation import expect, where, where_not

_of_responses = partial(expect, "sample", "responses")

SAMPLE_SUITE = (
    _of_responses("response_not_empty", "no response is empty", "ExpectColumnValueLengthsToBeBetween",
                  column="first_visible", min_value=1, row_condition=where("status", "ok")),
    _of_responses("response_status", "a response whose status is ok has a text", "ExpectColumnValuesToNotBeNull",
                  column="first_character", row_condition=where("status", "ok")),
    _of_responses("response_status", "a response that failed has no text", "ExpectColumnValuesToBeNull",
                  column="first_character", row_condition=where_not("status", "ok")),
)  # fmt: skip
