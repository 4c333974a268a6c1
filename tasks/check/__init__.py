"""Check: run the suites of expectations on stored rows, store the findings, and admit or refuse
tasks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sql
from expectations import (
    SUITES,
    Expectation,
    ExpectationResult,
    FailedRow,
    all_expectations,
    run_suite,
)
from expectations.failing import query_of
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.characters import hint_on, one_line
from tasks.rules.text.numbers import counted, list_text
from tasks.run.writing import LEFT_OUT, StageReport
from warehouse import Reader, Warehouse

Policies = Mapping[str, str]
"""Check -> its policy."""
FindingRow = dict[str, Any]
"""A row of `refusals` or `checks` without the columns that all rows of a run share."""


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
    suites = {expectation.check: expectation.suite for expectation in expectations}
    for name, policy in configured.items():
        if name not in suites:
            raise UsageError(f"quality.{name}: there is no such check{hint_on(name, suites)}")
        if policy == "quarantine" and suites[name] != "ingest":
            raise UsageError(
                f"quality.{name}: checks results, not tasks; its policy is warn or fail"
            )
    return {
        expectation.check: configured.get(expectation.check) or default_policy(expectation)
        for expectation in expectations
    }


def default_policy(expectation: Expectation) -> str:
    """Return the default policy of an expectation."""
    if expectation.severity == "warning":
        return "warn"
    return "quarantine" if expectation.suite == "ingest" else "fail"


def check(job: Job, suites: Sequence[str] = SUITES, *, reuse: bool = False) -> StageReport:
    """Run suites on the job's data-set revision, store the findings, and admit or refuse its tasks.

    With `reuse` (only for the suite `ingest`), the findings of the last run are used again if
    expectations, policies and rows have not changed.

    Raises:
        PipelineError: an expectation with the policy `fail` failed.
    """
    expectations, policies = _expectations_in(job, suites)
    if not expectations:
        return StageReport("check")
    warehouse = Warehouse(job.warehouse)
    key = job.key
    with warehouse.reader() as reader:
        stored_findings = _stored_findings(reader, key, expectations, policies) if reuse else None
        if stored_findings is not None:
            return _report(job, stored_findings, policies)
        findings = run_suite(
            expectations,
            lambda table: reader.arrow(sql.read(f"checks/{table}"), key).to_pandas(),
            _sound_sizes(reader, expectations, key),
        )
    shared_columns = {
        **key,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
    # The rows of `checks` decide which refusals count, so they are written last.
    warehouse.write("refusals", [shared_columns | row for row in _refusals(findings, policies)])
    warehouse.write(
        "checks", [shared_columns | _check_row(finding, policies) for finding in findings]
    )
    if "ingest" in suites:  # other findings change no result, and are published with the next ones
        warehouse.publish()
    return _report(job, findings, policies)


def _sound_sizes(
    reader: Reader,
    expectations: Sequence[Expectation],
    key: dict[str, str],
) -> dict[str, int]:
    """Return the number of rows of each checked table in which SQL finds no row that may fail.

    Great Expectations, whose import takes seconds, is needed for the others: it names the rows.
    """
    sizes = {}
    for table in {expectation.table for expectation in expectations}:
        their_expectations = [
            expectation for expectation in expectations if expectation.table == table
        ]
        query = query_of(their_expectations)
        if query is not None:
            checked = {"checked": sql.read(f"checks/{table}")}
            [row] = reader.rows(sql.with_ctes(query, checked), key)
            if not row["may_fail"]:
                sizes[table] = row["n_rows"]
    return sizes


def _refusals(findings: Iterable[ExpectationResult], policies: Policies) -> Iterator[FindingRow]:
    """Yield one refusal for each task and check, with all findings.

    A check with the policy `fail` refuses tasks too.
    """
    details = defaultdict(list)
    for finding in findings:
        expectation = finding.expectation
        if expectation.suite == "ingest" and policies[expectation.check] != "warn":
            for failure in finding.failures:
                details[failure.task_id, expectation.check].append(
                    f"{expectation.meaning}: {failure.note}"
                )
    for (task_id, check_name), texts in details.items():
        yield {
            "task_id": task_id,
            "check_name": check_name,
            "severity": policies[check_name],
            "detail": one_line("; ".join(dict.fromkeys(texts)), most_chars=2000),
        }


def _check_row(finding: ExpectationResult, policies: Policies) -> FindingRow:
    """Return the row of a finding in `checks`."""
    expectation = finding.expectation
    return {
        "suite": expectation.suite,
        "check_name": expectation.check,
        "expectation": expectation.text,
        "table_name": expectation.table,
        "severity": policies[expectation.check],
        "success": not finding.failures,
        "n_evaluated": finding.n_evaluated,
        "n_failed": len(finding.failures),
        "failing_keys": [failure.key for failure in finding.failures],
    }


def needs_check(job: Job, reader: Reader) -> bool:
    """Return whether the findings of the ingest suite are missing, or no longer valid."""
    expectations, policies = _expectations_in(job, ["ingest"])
    return _stored_findings(reader, job.key, expectations, policies) is None


def _expectations_in(job: Job, suites: Sequence[str]) -> tuple[list[Expectation], Policies]:
    """Return the expectations in some suites, and the policies of all checks."""
    expectations = expectations_of(load_benchmark(job.benchmark))
    policies = policies_of(job, expectations)
    return [expectation for expectation in expectations if expectation.suite in suites], policies


def _stored_findings(
    reader: Reader,
    key: dict[str, str],
    expectations: list[Expectation],
    policies: Policies,
) -> list[ExpectationResult] | None:
    """Return the last findings of the ingest suite; None if expectations, policies or the number of
    rows have changed.

    Comparing numbers is enough: the rows of a revision never change, and ingesting another split
    only adds rows. A failing key is the id of a task, or of a task and a criterion as
    `sql/checks.sql` joins them.
    """
    rows = reader.rows(
        "from checks where benchmark = $benchmark and dataset_revision = $dataset_revision"
        " qualify run_id = arg_max(run_id, created_at) filter (suite = 'ingest') over ()",
        key,
    )
    stored_checks = {
        (row["check_name"], row["expectation"], row["table_name"], row["severity"]): row
        for row in rows
    }
    criteria = reader.select("criteria", "task_id, criterion_id", **key)
    sizes = {"rubrics": len(reader.select("tasks", "1", **key)), "criteria": len(criteria)}
    tasks_by_key = {f"{row['task_id']}/{row['criterion_id']}": row["task_id"] for row in criteria}
    findings = []
    for expectation in expectations:
        policy = policies[expectation.check]
        row = stored_checks.get((expectation.check, expectation.text, expectation.table, policy))
        if row is None or row["n_evaluated"] != sizes[expectation.table]:
            return None
        failures = tuple(
            FailedRow(failing_key, tasks_by_key.get(failing_key, failing_key))
            for failing_key in row["failing_keys"]
        )
        findings.append(ExpectationResult(expectation, row["n_evaluated"], failures))
    return findings


def _report(job: Job, findings: list[ExpectationResult], policies: Policies) -> StageReport:
    """Return the report of the findings: warnings on failed ones, and a note on all.

    Raises:
        PipelineError: an expectation with the policy `fail` failed.
    """
    report = StageReport("check", rows=len(findings))
    failed = [finding for finding in findings if finding.failures]
    refused = set[str]()
    accepted = set(job.settings.quality.accepted)
    n_tasks = next(
        (finding.n_evaluated for finding in findings if finding.expectation.table == "rubrics"), 0
    )
    for finding in failed:
        name = finding.expectation.check
        policy = policies[name]
        keys = {failure.task_id or failure.key for failure in finding.failures}
        line = (
            f"{name} ({policy}): {len(finding.failures)} of {counted(finding.n_evaluated, 'row')}"
            f" fail: {list_text(sorted(keys), 5)}"
        )
        if policy == "fail":
            raise PipelineError(
                f"{line}; correct the data, or set quality.{name} to another policy"
            )
        if policy == "warn":
            report.warnings.append(line)
            continue
        # Only checks of the suite `ingest` have the policy `quarantine`, so the keys are task ids.
        refused |= keys
        new_keys = keys - accepted
        if new_keys:
            count = f"{len(new_keys)} of {counted(n_tasks, 'task')} {LEFT_OUT}"
            rule = f"the rule is that {finding.expectation.meaning} ({name})"
            report.warnings.append(f"{count}: {rule}: {list_text(sorted(new_keys), 5)}")
    # A run that is limited to N tasks takes N admitted ones, whatever is refused.
    report.is_below_bar = bool(refused - accepted) and job.limit is None
    if report.is_below_bar:
        report.warnings.append(
            "if these tasks are known, `prbench check --accept` prints the lines of the"
            " configuration that accept them"
        )
    counts = f"{counted(len(findings), 'expectation')}, {len(failed)} failed"
    if n_tasks:  # tasks are checked, not only results
        counts += f", {counted(len(refused), 'task')} in quarantine"
    n_accepted = len(refused & accepted)
    if n_accepted:
        counts += f", {n_accepted} of them accepted"
    report.notes.append(counts)
    return report
