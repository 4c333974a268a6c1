"""Check: run the suites of expectations on stored rows, store the findings, and admit or refuse
tasks.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import sql
from expectations import (
    SUITES,
    Expectation,
    ExpectationResult,
    FailedRow,
    all_expectations,
    run_suite,
)
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.characters import did_you_mean, one_line
from tasks.rules.text.numbers import counted, some
from tasks.run.writing import LEFT_OUT, StageReport
from warehouse import Reader, Warehouse


def expectations_of(benchmark: Benchmark) -> list[Expectation]:
    """Return the expectations of a benchmark's data, responses and verdicts.

    Raises:
        UsageError: the benchmark declares an invariant that cannot be checked.
    """
    try:
        return all_expectations(benchmark.invariants)
    except ValueError as error:
        raise UsageError(f"benchmark {benchmark.name}: {error}") from error


def policies_of(job: Job, expectations: Iterable[Expectation]) -> dict[str, str]:
    """Return the policy of each check: `quarantine`, `warn` or `fail`, as configured or by default.

    Args:
        expectations: all expectations of the job's benchmark.

    Raises:
        UsageError: a policy is configured for an unknown check, or `quarantine` for a check of
            results.
    """
    configured = job.settings.quality.policies
    suites = {each.check: each.suite for each in expectations}
    for name, policy in configured.items():
        if name not in suites:
            near = did_you_mean(name, suites) or f"; known are {', '.join(sorted(suites))}"
            raise UsageError(f"quality.{name}: there is no such check{near}")
        if policy == "quarantine" and suites[name] != "ingest":
            raise UsageError(
                f"quality.{name}: checks results, not tasks; its policy is warn or fail"
            )
    return {each.check: configured.get(each.check, default_policy(each)) for each in expectations}


def default_policy(expectation: Expectation) -> str:
    """Return the default policy of an expectation."""
    return (
        "warn"
        if expectation.severity == "warning"
        else "quarantine"
        if expectation.suite == "ingest"
        else "fail"
    )


Policies = Mapping[str, str]


def check(job: Job, suites: Sequence[str] = SUITES, *, reuse: bool = False) -> StageReport:
    """Run suites on the job's data-set revision, store the findings, and admit or refuse its tasks.

    With `reuse`, the findings of the last run are used again if expectations, policies and rows
    have not changed.

    Raises:
        PipelineError: an expectation with the policy `fail` failed.
    """
    expectations, policies = _declared(job, suites)
    if not expectations:
        return StageReport("check")
    warehouse = Warehouse(job.warehouse)
    key = job.key
    with warehouse.reader() as reader:
        known = _known_findings(reader, key, expectations, policies) if reuse else None
        if known is not None:
            return _report(job, known, policies)
        findings = run_suite(
            expectations, lambda table: reader.arrow(sql.read(f"checks/{table}"), key).to_pandas()
        )
    common = {
        **key,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    # One refusal for each task and check, with all findings.
    refused: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in findings:
        if each.expectation.suite == "ingest" and policies[each.expectation.check] != "warn":
            for row in each.failures:
                refused[row.task_id, each.expectation.check].append(
                    f"{each.expectation.meaning}: {row.note}"
                )
    refusals = [
        common
        | {
            "task_id": task_id,
            "check_name": check_name,
            "severity": policies[check_name],
            "detail": one_line("; ".join(dict.fromkeys(details)), most_chars=2000),
        }
        for (task_id, check_name), details in refused.items()
    ]
    # The rows of `checks` decide which refusals count, so they are written last.
    warehouse.write("refusals", refusals)
    warehouse.write(
        "checks",
        [
            common
            | {
                "suite": of.suite,
                "check_name": of.check,
                "expectation": of.text,
                "table_name": of.table,
                "severity": policies[of.check],
                "success": not each.failures,
                "n_evaluated": each.n_evaluated,
                "n_failed": len(each.failures),
                "failing_keys": [row.key for row in each.failures],
            }
            for each in findings
            for of in [each.expectation]
        ],
    )
    warehouse.publish()
    return _report(job, findings, policies)


def has_unchecked(job: Job, reader: Reader) -> bool:
    """Return whether the findings of the ingest suite are missing, or no longer valid."""
    return _known_findings(reader, job.key, *_declared(job, ["ingest"])) is None


def _declared(job: Job, suites: Sequence[str]) -> tuple[list[Expectation], Policies]:
    """Return the expectations in some suites, and the policies of all checks."""
    everything = expectations_of(load_benchmark(job.settings.benchmark))
    return [each for each in everything if each.suite in suites], policies_of(job, everything)


def _known_findings(
    reader: Reader, key: dict[str, str], expectations: list[Expectation], policies: Policies
) -> list[ExpectationResult] | None:
    """Return the last findings of the ingest suite; None if expectations, policies or the number of
    rows changed.

    Comparing numbers is enough: the rows of a revision never change, and ingesting another split
    only adds rows.
    """
    last = "run_id = arg_max(run_id, created_at) filter (suite = 'ingest') over ()"
    of_revision = "benchmark = $benchmark and dataset_revision = $dataset_revision"
    rows = reader.rows(f"from checks where {of_revision} qualify {last}", key)
    stored = {
        (row["check_name"], row["expectation"], row["table_name"], row["severity"]): row
        for row in rows
    }
    criteria = reader.select("criteria", "task_id, criterion_id", **key)
    sizes = {"rubrics": len(reader.select("tasks", "1", **key)), "criteria": len(criteria)}
    task_of = {f"{row['task_id']}/{row['criterion_id']}": row["task_id"] for row in criteria}
    results = []
    for each in expectations:
        row = stored.get((each.check, each.text, each.table, policies[each.check]))
        if row is None or row["n_evaluated"] != sizes[each.table]:
            return None
        failures = tuple(FailedRow(key, task_of.get(key, key)) for key in row["failing_keys"])
        results.append(ExpectationResult(each, row["n_evaluated"], failures))
    return results


def _report(job: Job, findings: list[ExpectationResult], policies: Policies) -> StageReport:
    report = StageReport("check", rows=len(findings))
    failed = [finding for finding in findings if finding.failures]
    refused = set[str]()
    accepted = set(job.settings.quality.accepted)
    n_tasks = next(
        (each.n_evaluated for each in findings if each.expectation.table == "rubrics"), 0
    )
    for finding in failed:
        name = finding.expectation.check
        n_failed = len(finding.failures)
        policy = policies[name]
        is_of_tasks = finding.expectation.suite == "ingest"
        keys = {failure.task_id if is_of_tasks else failure.key for failure in finding.failures}
        line = (
            f"{name} ({policy}): {n_failed} of {counted(finding.n_evaluated, 'row')} fail:"
            f" {some(sorted(keys), 5)}"
        )
        if policy == "fail":
            raise PipelineError(
                f"{line}; correct the data, or set quality.{name} to another policy"
            )
        if policy == "warn":
            report.warnings.append(line)
            continue
        refused |= keys
        new = keys - accepted
        if new:
            rule = f"the rule is that {finding.expectation.meaning} ({name})"
            named = f"{len(new)} of {counted(n_tasks, 'task')} {LEFT_OUT}"
            report.warnings.append(f"{named}: {rule}: {some(sorted(new), 5)}")
    # A run of N tasks takes admitted ones, so that others are refused leaves out none of its tasks.
    report.is_below_bar = bool(refused - accepted) and job.limit is None
    if report.is_below_bar:
        report.warnings.append(
            "if these tasks are known, `prbench check --accept` prints the lines of the"
            " configuration that accept them"
        )
    known = f", {len(refused & accepted)} of them accepted" if refused & accepted else ""
    counts = f"{counted(len(findings), 'expectation')}, {len(failed)} failed"
    report.notes.append(f"{counts}, {counted(len(refused), 'task')} in quarantine{known}")
    return report
