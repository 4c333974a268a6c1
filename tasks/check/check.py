"""Check: the data-quality suites on what is stored, and what follows for the tasks that break a rule."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sql
from expectations import Failure, Finding, Outcome, described, run_suite
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.settings import Job
from tasks.data_docs import has_data_docs, write_data_docs
from tasks.dataset.source import source_of
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.records import Invariant
from tasks.rules.text import one_line
from tasks.run.stage_report import StageReport
from warehouse import Reader, Warehouse

SUITES = ("ingest", "sample", "judge")
_NAMED = 5


def _rule(stage: str, check_name: str, frame: str, column: str, value: Any, policy: str, meaning: str) -> Invariant:
    return Invariant(check_name, stage, frame, "in", {"column": column, "values": [value]}, policy, meaning)


RESULT_RULES = (
    _rule("sample", "response_not_empty", "responses", "is_answer_empty", False, "fail", "no answer is empty"),
    _rule("sample", "response_status", "responses", "do_status_and_text_agree", True, "fail",
          "a response has a text exactly when its status is ok"),
    _rule("judge", "verdict_value", "verdicts", "do_status_and_value_agree", True, "fail",
          "met is 1, partial 0.5, unmet 0, and a failure has no value"),
    _rule("judge", "verdict_has_response", "verdicts", "has_response", True, "fail",
          "no verdict without its response"),
    _rule("judge", "verdict_has_criterion", "verdicts", "has_criterion", True, "fail",
          "no verdict without its criterion"),
    _rule("judge", "verdict_count", "judged_responses", "n_missing", 0, "warn",
          "a response that is judged has a verdict for each criterion"),
)  # fmt: skip
"""What must hold after sampling and judging, in every benchmark."""


def rules_of(benchmark: Benchmark, suites: Iterable[str] = SUITES) -> list[Invariant]:
    """The rules of some suites, with the benchmark's own among them."""
    return [rule for rule in (*benchmark.invariants, *RESULT_RULES) if rule.stage in set(suites)]


def with_policies(job: Job, rules: Sequence[Invariant]) -> list[Invariant]:
    """The rules under the policies of the configuration.

    Raises:
        UsageError: a policy is set for an unknown check, or `quarantine` for one that does not look at tasks.
    """
    policies = job.settings.quality.policies
    known = {rule.check_name: rule.stage for rule in rules_of(load_benchmark(job.settings.benchmark))}
    for name, policy in policies.items():
        if name not in known:
            raise UsageError(f"quality.{name}: there is no such check; known: {', '.join(sorted(known))}")
        if policy == "quarantine" and known[name] != "ingest":
            raise UsageError(f"quality.{name}: looks at results, not at tasks; its policy is warn or fail")
    return [replace(rule, policy=policies.get(rule.check_name, rule.policy)) for rule in rules]


def check(job: Job, suites: Sequence[str] = SUITES, *, reuse: bool = False) -> StageReport:
    """Run suites over the job's data-set revision, store what they found, and admit or refuse its tasks.

    With `reuse`, what the same rules under the same policies found on the same rows the last time stands, if its pages
    are there too (see `tasks.data_docs`).

    Raises:
        PipelineError: a rule failed whose policy is `fail`.
    """
    benchmark, source = source_of(job)
    rules = with_policies(job, rules_of(benchmark, suites))
    warehouse = Warehouse(job.warehouse)
    key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
    outcomes: list[Outcome] = []
    with warehouse.reader() as reader:
        known = _known_findings(reader, key, rules) if reuse and has_data_docs(warehouse, key, rules) else None
        if known is not None:
            return _report(job, known)
        parameters = {"benchmark": benchmark.name, "revision": source.revision}
        for suite in suites:
            of_suite = [rule for rule in rules if rule.stage == suite]
            outcomes.append(
                run_suite(suite, of_suite, lambda name: reader.frame(sql.read(f"checks/{name}"), parameters))
            )
    findings = [finding for outcome in outcomes for finding in outcome.findings]
    now = datetime.now(UTC)
    # The rows of `checks` say which refusals count, so they come last.
    warehouse.write("refusals", _refusal_rows(job, key, findings, now))
    warehouse.write("checks", [_check_row(job, key, finding, now) for finding in findings])
    warehouse.publish()
    not_written = write_data_docs(warehouse, key, outcomes)
    report = _report(job, findings)
    report.warnings += [not_written] if not_written else []
    return report


def _known_findings(reader: Reader, key: dict[str, str], rules: list[Invariant]) -> list[Finding] | None:
    """What the latest checks of a revision found, if the rules, their policies and the number of rows are the same.

    The rows of a revision never change, there can only come more of them when a further split is ingested.
    """
    rows = reader.rows(
        "select * from checks where benchmark = $benchmark and dataset_revision = $dataset_revision and run_id = ("
        "  select arg_max(run_id, created_at) from checks"
        "  where benchmark = $benchmark and dataset_revision = $dataset_revision and suite = 'ingest')",
        key,
    )
    found = {(row["check_name"], row["expectation"], row["table_name"], row["severity"]): row for row in rows}
    wanted = [(rule.check_name, described(rule), rule.frame, rule.policy) for rule in rules]
    if any(name not in found for name in wanted):
        return None
    sizes = reader.rows(
        "select count(*) as rubrics, coalesce(sum(n_criteria), 0)::bigint as criteria from tasks "
        "where benchmark = $benchmark and dataset_revision = $dataset_revision",
        key,
    )[0]
    if any(found[name]["n_evaluated"] != sizes[name[2]] for name in wanted):
        return None
    owners = reader.rows(
        "select task_id || '/' || criterion_id as key, task_id from criteria "
        "where benchmark = $benchmark and dataset_revision = $dataset_revision",
        key,
    )
    task_of = {row["key"]: row["task_id"] for row in owners}
    return [
        Finding(
            rule, name[1], found[name]["n_evaluated"],
            tuple(Failure(failing, task_of.get(failing, failing), "") for failing in found[name]["failing_keys"]),
        )
        for rule, name in zip(rules, wanted, strict=True)
    ]  # fmt: skip


def _check_row(job: Job, key: dict[str, str], finding: Finding, now: datetime) -> dict[str, Any]:
    rule = finding.rule
    assert isinstance(rule, Invariant)
    return key | {
        "run_id": job.run_id,
        "suite": rule.stage,
        "check_name": rule.check_name,
        "expectation": finding.expectation,
        "table_name": rule.frame,
        "severity": rule.policy,
        "success": finding.success,
        "n_evaluated": finding.n_evaluated,
        "n_failed": len(finding.failures),
        "failing_keys": [failure.key for failure in finding.failures],
        "created_at": now,
    }


def _refusal_rows(job: Job, key: dict[str, str], findings: list[Finding], now: datetime) -> list[dict[str, Any]]:
    """One row a task and check, with all that was found."""
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for finding in findings:
        rule = finding.rule
        assert isinstance(rule, Invariant)
        if rule.stage == "ingest" and rule.policy != "warn":
            for failure in finding.failures:
                found[failure.task_id, rule.check_name, rule.policy].append(f"{rule.meaning}: {failure.note}")
    return [
        key | {
            "run_id": job.run_id, "task_id": task_id, "check_name": check_name, "severity": policy,
            "detail": one_line("; ".join(dict.fromkeys(details)), most_chars=2000), "created_at": now,
        }
        for (task_id, check_name, policy), details in found.items()
    ]  # fmt: skip


def _report(job: Job, findings: list[Finding]) -> StageReport:
    report = StageReport("check", rows=len(findings))
    failed = [finding for finding in findings if not finding.success]
    fatal = []
    accepted = set(job.settings.quality.accepted)
    refused: set[str] = set()
    for finding in failed:
        rule = finding.rule
        assert isinstance(rule, Invariant)
        keys = sorted({f.task_id if rule.stage == "ingest" else f.key for f in finding.failures})
        some = ", ".join(keys[:_NAMED]) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")
        line = f"{rule.check_name} ({rule.policy}): {len(finding.failures)} of {finding.n_evaluated} rows fail: {some}"
        if rule.policy == "fail":
            fatal.append(line)
        report.warnings.append(line)
        if rule.policy == "quarantine":
            refused |= set(keys)
    if fatal:
        raise PipelineError(f"{fatal[0]}; correct the data, or set quality.{fatal[0].split(' ')[0]} to another policy")
    report.is_below_bar = bool(refused - accepted)
    report.notes.append(f"{len(findings)} expectations, {len(failed)} failed, {len(refused)} tasks in quarantine")
    return report
