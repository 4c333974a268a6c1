"""All suites together."""

from expectations.expectation import Expectation
from expectations.ingest import Invariants, ingest_suite
from expectations.judge import JUDGE_SUITE
from expectations.sample import SAMPLE_SUITE


def all_expectations(invariants: Invariants) -> list[Expectation]:
    """What is expected of a benchmark's data, responses and verdicts.

    Args:
        invariants: what the benchmark declares for its data.

    Raises:
        ValueError: an invariant is not declared as its check needs it.
    """
    return [*ingest_suite(invariants), *SAMPLE_SUITE, *JUDGE_SUITE]
