"""What follows where a check fails, by default and as configured."""

from collections.abc import Iterable

from expectations import Expectation, all_expectations
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import did_you_mean

_DEFAULT_POLICIES = {
    ("ingest", "critical"): "quarantine", ("sample", "critical"): "fail", ("judge", "critical"): "fail",
}  # fmt: skip
"""By suite and severity; everything else only warns."""


def expectations_of(benchmark: Benchmark) -> list[Expectation]:
    """What is expected of a benchmark's data, responses and verdicts.

    Raises:
        UsageError: the benchmark declares an invariant that cannot be checked.
    """
    try:
        return all_expectations(benchmark.invariants)
    except ValueError as error:
        raise UsageError(f"benchmark {benchmark.name}: {error}") from error


def policies_of(job: Job, expectations: Iterable[Expectation]) -> dict[str, str]:
    """What follows where a check fails: `quarantine`, `warn` or `fail`, as configured or by default.

    Args:
        expectations: all of the job's benchmark.

    Raises:
        UsageError: a policy is configured for an unknown check, or `quarantine` for one that does not look at tasks.
    """
    configured = job.settings.quality.policies
    suites = {each.check: each.suite for each in expectations}
    problems: list[str] = []
    for name, policy in configured.items():
        if name not in suites:
            near = did_you_mean(name, suites) or f"; known are {', '.join(sorted(suites))}"
            problems.append(f"quality.{name}: there is no such check{near}")
        elif policy == "quarantine" and suites[name] != "ingest":
            problems.append(f"quality.{name}: looks at results, not at tasks; its policy is warn or fail")
    if problems:
        raise UsageError("; ".join(problems))
    return {each.check: configured.get(each.check, default_policy(each)) for each in expectations}


def default_policy(expectation: Expectation) -> str:
    """What follows where an expectation fails and nothing is configured."""
    return _DEFAULT_POLICIES.get((expectation.suite, expectation.severity), "warn")
