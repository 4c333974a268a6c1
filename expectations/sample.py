"""What must hold for responses, in every benchmark."""

from functools import partial

from expectations.expectation import expect, where

_of_responses = partial(expect, "sample", "responses")

SAMPLE_SUITE = (
    _of_responses("response_not_empty", "no answer is empty", "ExpectColumnValueLengthsToBeBetween",
                  column="first_visible", min_value=1, row_condition=where("status", "ok")),
    _of_responses("response_status", "a response has a text exactly when its status is ok",
                  "ExpectColumnPairValuesToBeEqual",
                  column_A="is_ok", column_B="has_text", ignore_row_if="either_value_is_missing"),
)  # fmt: skip
