"""What must hold for verdicts, in every benchmark."""

from functools import partial

from expectations.expectation import expect

_of_verdicts = partial(expect, "judge", "verdicts")

JUDGE_SUITE = (
    _of_verdicts("verdict_value", "met is 1, partial 0.5, unmet 0, and a failure has no value",
                 "ExpectColumnPairValuesToBeEqual", column_A="value", column_B="value_of_status"),
    _of_verdicts("verdict_has_response", "no verdict without its response",
                 "ExpectColumnValuesToNotBeNull", column="response_trial"),
    _of_verdicts("verdict_has_criterion", "no verdict without its criterion",
                 "ExpectColumnValuesToNotBeNull", column="criterion_position"),
    expect("judge", "judged_responses", "verdict_count", "a response that is judged has a verdict for each criterion",
           "ExpectColumnValuesToBeInSet", severity="warning", column="n_missing", value_set=[0]),
)  # fmt: skip
