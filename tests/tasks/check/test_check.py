"""Check: tasks that break a rule are refused, and faults in responses and verdicts are found row by
row.
"""

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import sql
from expectations import all_expectations, run_suite
from tasks.assemble import assemble
from tasks.check import check
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.writing import StageReport
from tests import kit
from tests.kit import (
    Fill,
    admitted,
    criterion,
    job_on,
    response,
    row,
    rows_in,
    values_in,
    verdict,
)
from tests.tasks.check.bad_rows import ADMITTED, EXPECTED, WARNED, spoiled

pytestmark = pytest.mark.usefixtures("without_scores")

Checked = tuple[Path, StageReport]
QUARANTINING = sorted({name for names in EXPECTED.values() for name in names})


def refused(root: Path) -> dict[str, set[str]]:
    """The tasks in quarantine, with the checks that refused them."""
    checks_by_task = defaultdict(set)
    for refusal in rows_in(root, "from quarantine"):
        checks_by_task[refusal["task_id"]].add(refusal["check_name"])
    return checks_by_task


def admitted_in(root: Path) -> list[str]:
    rows = rows_in(root, "from tasks where is_admitted order by task_id")
    return [row["task_id"] for row in rows]


def test_each_bad_task_is_refused_by_the_check_for_its_fault_and_no_other(checked):
    root, _ = checked

    assert refused(root) == EXPECTED
    assert admitted_in(root) == ADMITTED


def test_the_report_counts_the_quarantine_and_is_below_the_bar(checked):
    _, report = checked

    assert report.is_below_bar
    assert "\n" not in "".join(report.warnings)
    [note] = report.notes
    assert note.endswith(", 20 tasks in quarantine")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("weight-0", "weight 0"),
        ("weight-11", "weight 11"),
        ("weight-half", "weight 2.5"),
        ("weight-text", "weight five points"),
        ("weight-none", "weight missing"),
        ("criteria-9", "9 criteria"),
        ("criteria-31", "31 criteria"),
        ("turns-gap", "u-u"),
        ("same-task", "2 row"),
    ],
)
def test_the_quarantine_describes_the_fault(checked, task, words):
    root, _ = checked

    [row] = rows_in(root, f"from quarantine where task_id = '{task}'")

    assert words in row["detail"]


@pytest.mark.parametrize("case", WARNED)
def test_a_rule_that_warns_names_the_task_and_admits_it(checked, case):
    root, report = checked
    _, check_name = WARNED[case]

    beginning = f"{check_name} (warn)"
    [warning] = [line for line in report.warnings if line.startswith(beginning)]
    assert case in warning
    assert case in admitted_in(root)


def test_refused_tasks_and_their_criteria_can_still_be_looked_at(checked):
    root, _ = checked

    query = "from criteria where task_id = 'weight-text' and position = 0"
    [criterion] = rows_in(root, query)
    [finding] = rows_in(root, "from checks where check_name = 'positive_criterion'")

    assert criterion["weight"] is None
    assert criterion["weight_text"] == "five points"
    assert finding["n_failed"] == 3
    assert finding["failing_keys"] == ["criteria-0", "criteria-none", "no-positive"]
    refused_tasks = rows_in(root, "from tasks where not is_admitted")
    assert len(refused_tasks) == 20


def test_only_admitted_tasks_are_assembled_and_no_task_twice(checked, bad_rows):
    root, _ = checked
    job = job_on(bad_rows, root)

    assert assemble(job).rows == len(ADMITTED)
    assert assemble(job).rows == 0
    rows = rows_in(root, "select distinct task_id from messages order by task_id")
    assert [row["task_id"] for row in rows] == ADMITTED


# policies


def test_a_check_whose_findings_are_stored_is_not_repeated(bad_rows, unchecked):
    job = job_on(bad_rows, unchecked, run_id="first")
    report = check(job, ["ingest"])

    second_job = job.model_copy(update={"run_id": "second"})
    assert check(second_job, ["ingest"], reuse=True) == report
    assert values_in(unchecked, "select distinct run_id from checks") == [("first",)]


def test_a_check_is_repeated_when_its_policy_changes(bad_rows, unchecked):
    check(job_on(bad_rows, unchecked), ["ingest"])

    policies = dict.fromkeys(QUARANTINING, "warn")
    job = job_on(
        bad_rows,
        unchecked,
        run_id="second",
        quality=policies,
    )
    report = check(job, ["ingest"], reuse=True)

    assert not report.is_below_bar
    assert refused(unchecked) == {}
    assert admitted_in(unchecked) == sorted([*ADMITTED, *EXPECTED])


def test_a_policy_of_fail_fails_in_one_line_that_names_the_check_and_the_task(
    bad_rows, unchecked
):
    job = job_on(
        bad_rows,
        unchecked,
        quality={"positive_criterion": "fail"},
    )

    line = r"^positive_criterion \(fail\): .*no-positive.*$"
    with pytest.raises(PipelineError, match=line):
        check(job, ["ingest"])


def test_an_accepted_quarantine_is_not_below_the_bar(bad_rows, unchecked):
    job = job_on(
        bad_rows,
        unchecked,
        quality={"accepted": sorted(EXPECTED)},
    )

    report = check(job, ["ingest"])

    assert not report.is_below_bar
    warnings = "\n".join(report.warnings)
    assert "left out" not in warnings
    assert "--accept" not in warnings
    assert report.notes[-1].endswith("20 tasks in quarantine, 20 of them accepted")
    assert admitted_in(unchecked) == ADMITTED


def test_one_quarantine_that_is_not_accepted_is_below_the_bar(bad_rows, unchecked):
    accepted = sorted(EXPECTED.keys() - {"weight-0"})
    job = job_on(
        bad_rows,
        unchecked,
        quality={"accepted": accepted},
    )

    report = check(job, ["ingest"])

    assert report.is_below_bar
    [warning] = [line for line in report.warnings if "left out" in line]
    assert warning.startswith("1 of 27 tasks are left out: the rule is that ")
    assert warning.endswith(" (weight_range): weight-0")
    assert "`prbench check --accept` prints the lines" in report.warnings[-1]


@pytest.mark.parametrize(
    ("quality", "reason"),
    [
        ({"no_such_check": "warn"}, "no such check"),
        ({"verdict_value": "quarantine"}, "its policy is warn or fail"),
    ],
)
def test_an_impossible_policy_is_refused(bad_rows, unchecked, quality, reason):
    with pytest.raises(UsageError, match=reason):
        check(job_on(bad_rows, unchecked, quality=quality))


WHITE_SPACE = ("\u00a0", "\u2003", "\u3000", "\x0b", "\x0c", "\u2028")
INVISIBLE = ("\u200b", "\ufeff \u200d", "\u2060", "\u3164")


def test_a_title_that_shows_nothing_is_empty_and_one_of_a_letter_is_not(tmp_path):
    empty_titles = (*WHITE_SPACE, *INVISIBLE)
    titles = (*empty_titles, "0", "a", "u", "\\")
    rows = [spoiled(f"t{title!a}", title=title) for title in titles]
    job = job_on(kit.write_jsonl(tmp_path / "x.jsonl", rows), tmp_path / "warehouse")
    ingest(job)

    check(job, ["ingest"])

    expected = {f"t{title!a}": {"title_not_empty"} for title in empty_titles}
    assert refused(job.warehouse) == expected


def test_rows_that_meet_all_expectations_need_no_great_expectations(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    job = job_on("sample", tmp_path)
    ingest(job)

    report = check(job, ["ingest"])

    assert report.notes == ["16 expectations, 0 failed, 0 tasks in quarantine"]
    assert values_in(tmp_path, "select distinct n_evaluated from checks") != [(0,)]


KEY = {"benchmark": "prbench", "dataset_revision": kit.REVISION}
TASK = admitted(["t"], n_criteria=2) | {
    "criteria": [criterion("t", 0, 5), criterion("t", 1, 5)]
}
RESPONSE = response("t")
CRITERION = TASK["criteria"][0]
VERDICTS = [verdict(RESPONSE, criterion, 1.0) for criterion in TASK["criteria"]]
"""Complete verdicts on the response."""


def failing(published: Fill, **tables: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The keys that fail, by check."""
    reader = published(TASK | tables)
    findings = run_suite(
        all_expectations({}),
        lambda table: reader.arrow(sql.read(f"checks/{table}"), KEY).to_pandas(),
    )
    keys_by_check = defaultdict(set)
    for finding in findings:
        for failure in finding.failures:
            keys_by_check[finding.expectation.check].add(failure.key)
    return keys_by_check


TEXTS = [
    ("ok", "A response.", set()),
    ("ok", "0", set()),
    ("ok", "\n a", set()),
    ("refused", None, set()),
    ("ok", None, {"response_not_empty", "response_status"}),
    ("ok", "", {"response_not_empty"}),
    *(("ok", text, {"response_not_empty"}) for text in WHITE_SPACE),
    ("refused", "No.", {"response_status"}),
    ("empty", "", {"response_status"}),
    (None, "No status.", set()),
]


def test_a_response_is_complete_and_not_empty(published):
    responses = []
    expected = defaultdict(set)
    for trial, (status, text, checks) in enumerate(TEXTS, start=1):
        stored_response = response("t", trial=trial) | {
            "status": status,
            "text": text,
        }
        responses.append(stored_response)
        for check_name in checks:
            expected[check_name].add(stored_response["response_id"])

    assert failing(published, responses=responses) == expected


VALUES = [
    ("met", 1.0, True),
    ("partial", 0.5, True),
    ("unmet", 0.0, True),
    ("timeout", None, True),
    ("odd", None, True),
    ("met", 0.0, False),
    ("met", None, False),
    ("partial", 1.0, False),
    ("unmet", 0.5, False),
    ("unmet", None, False),
    ("timeout", 0.0, False),
    (None, 1.0, False),
]


def test_a_verdict_has_the_value_of_its_status(published):
    verdicts = []
    wrong_ids = []
    for trial, (status, value, is_right) in enumerate(VALUES, start=1):
        decision = verdict(RESPONSE, CRITERION, None, judge_trial=trial)
        verdicts.append(decision | {"status": status, "value": value})
        if not is_right:
            wrong_ids.append(decision["verdict_id"])

    failures = failing(
        published,
        responses=[RESPONSE],
        verdicts=verdicts,
    )

    assert failures["verdict_value"] == set(wrong_ids)


def test_a_verdict_without_its_response_is_found(published):
    orphan = verdict(
        response("t", trial=9),
        CRITERION,
        1.0,
    )

    failures = failing(
        published,
        responses=[RESPONSE],
        verdicts=[*VERDICTS, orphan],
    )

    assert failures == {"verdict_has_response": {orphan["verdict_id"]}}


def test_a_verdict_on_a_criterion_that_its_task_does_not_have_is_found(published):
    unknown = verdict(RESPONSE, CRITERION | {"criterion_id": "another"}, 1.0)
    foreign = verdict(RESPONSE | {"task_id": "u"}, CRITERION, 1.0, judge_trial=2)

    failures = failing(
        published,
        responses=[RESPONSE],
        verdicts=[*VERDICTS, unknown, foreign],
    )

    assert failures == {
        "verdict_has_criterion": {unknown["verdict_id"], foreign["verdict_id"]}
    }


def test_a_response_that_lacks_verdicts_is_a_warning_once_judging_began(published):
    begun = response("t", trial=2)
    untouched = response("t", trial=3)
    verdicts = [*VERDICTS, verdict(begun, CRITERION, 1.0)]

    failures = failing(
        published,
        responses=[RESPONSE, begun, untouched],
        verdicts=verdicts,
    )

    assert failures.keys() == {"verdict_count"}
    [key] = failures["verdict_count"]
    assert key.startswith(f"{begun['response_id']}/")


def test_what_people_did_not_label_is_not_missing_beside_a_judge(published):
    imported = {"judge_config_hash": "imported", "source": "imported"}
    label = verdict(
        RESPONSE,
        CRITERION,
        1.0,
        judge="eva",
        **imported,
    )
    labellers = [row("labellers", judge="eva", import_batch="a-sheet")]

    failures = failing(
        published,
        responses=[RESPONSE],
        verdicts=[*VERDICTS, label],
        labellers=labellers,
    )

    assert failures == {}
