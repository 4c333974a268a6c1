"""Check: tasks that break a rule are refused, and faults in responses and verdicts are found row by
row.
"""

import re
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
from tests.kit import Fill, admitted, criterion, job_on, response, row, rows_in, values_in, verdict
from tests.tasks.check.bad_rows import ADMITTED, EXPECTED, WARNED, spoiled

pytestmark = pytest.mark.usefixtures("without_scores")

Checked = tuple[Path, StageReport]
QUARANTINING = sorted({name for names in EXPECTED.values() for name in names})


def refused(root: Path) -> dict[str, set[str]]:
    rows: dict[str, set[str]] = {}
    for each in rows_in(root, "select task_id, check_name from quarantine"):
        rows.setdefault(each["task_id"], set()).add(each["check_name"])
    return rows


def admitted_in(root: Path) -> list[str]:
    return [
        row["task_id"]
        for row in rows_in(root, "select task_id from tasks where is_admitted order by task_id")
    ]


@pytest.mark.parametrize("task", EXPECTED)
def test_a_bad_task_is_refused_by_the_check_for_its_fault_and_no_other(
    checked: Checked, task: str
) -> None:
    assert EXPECTED[task] == refused(checked[0]).get(task)


def test_no_other_task_is_refused(checked: Checked) -> None:
    assert sorted(EXPECTED) == sorted(refused(checked[0]))
    assert admitted_in(checked[0]) == ADMITTED
    assert checked[1].is_below_bar
    assert [line for line in checked[1].warnings if len(line.splitlines()) != 1] == []
    assert [note.split(", ")[-1] for note in checked[1].notes] == [
        f"{len(EXPECTED)} tasks in quarantine"
    ]


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
def test_the_quarantine_says_what_was_found(checked: Checked, task: str, words: str) -> None:
    (detail,) = rows_in(checked[0], f"select detail from quarantine where task_id = '{task}'")

    assert words.lower() in detail["detail"].lower()


@pytest.mark.parametrize("case", WARNED)
def test_a_rule_that_warns_names_the_task_and_admits_it(checked: Checked, case: str) -> None:
    root, report = checked
    caught = [line for line in report.warnings if line.startswith(f"{WARNED[case][1]} (warn)")]

    assert len(caught) == 1
    assert case in caught[0]
    assert case in admitted_in(root)


def test_refused_tasks_and_their_criteria_can_still_be_looked_at(checked: Checked) -> None:
    query = (
        "select weight, weight_text from criteria where task_id = 'weight-text' and position = 0"
    )
    rows = rows_in(
        checked[0],
        "select n_failed, failing_keys from checks where check_name = 'positive_criterion'",
    )

    assert rows == [{"n_failed": 3, "failing_keys": ["criteria-0", "criteria-none", "no-positive"]}]
    assert values_in(checked[0], query) == [(None, "five points")]
    assert set(EXPECTED) <= {
        row["task_id"] for row in rows_in(checked[0], "select task_id from tasks")
    }


def test_only_admitted_tasks_are_assembled_and_no_task_twice(
    checked: Checked, bad_rows: Path
) -> None:
    root, _ = checked
    job = job_on(bad_rows, root)

    assert [len(ADMITTED), 0] == [assemble(job).rows, assemble(job).rows]
    assert [
        r["task_id"]
        for r in rows_in(root, "select distinct task_id from messages order by task_id")
    ] == ADMITTED


# policies


def test_a_check_that_stands_is_not_repeated_unless_its_policy_changes(
    bad_rows: Path, unchecked: Path
) -> None:
    first = check(job_on(bad_rows, unchecked, run_id="first"), ["ingest"])
    second = check(job_on(bad_rows, unchecked, run_id="second"), ["ingest"], reuse=True)

    assert first.warnings == second.warnings
    assert first.notes == second.notes
    assert first.is_below_bar == second.is_below_bar
    assert values_in(unchecked, "select distinct run_id from checks") == [("first",)]
    warned = job_on(
        bad_rows, unchecked, run_id="third", quality=dict.fromkeys(QUARANTINING, "warn")
    )
    assert not check(warned, ["ingest"], reuse=True).is_below_bar
    assert refused(unchecked) == {}
    assert sorted([*ADMITTED, *EXPECTED]) == admitted_in(unchecked)
    assert values_in(unchecked, "select distinct run_id from checks order by 1") == [
        ("first",),
        ("third",),
    ]


def test_a_policy_of_fail_fails_in_one_line_that_names_the_check_and_the_task(
    bad_rows: Path, unchecked: Path
) -> None:
    with pytest.raises(PipelineError) as caught:
        check(job_on(bad_rows, unchecked, quality={"positive_criterion": "fail"}), ["ingest"])

    assert len(str(caught.value).splitlines()) == 1
    assert "positive_criterion" in str(caught.value)
    assert "no-positive" in str(caught.value)


def test_an_accepted_quarantine_is_not_below_the_bar(bad_rows: Path, unchecked: Path) -> None:
    report = check(job_on(bad_rows, unchecked, quality={"accepted": sorted(EXPECTED)}), ["ingest"])

    assert not report.is_below_bar
    assert [line for line in report.warnings if "left out" in line or "--accept" in line] == []
    assert report.notes[-1].endswith(
        f"{len(EXPECTED)} tasks in quarantine, {len(EXPECTED)} of them accepted"
    )
    assert admitted_in(unchecked) == ADMITTED


def test_one_quarantine_that_is_not_accepted_is_below_the_bar(
    bad_rows: Path, unchecked: Path
) -> None:
    job = job_on(bad_rows, unchecked, quality={"accepted": sorted(set(EXPECTED) - {"weight-0"})})
    report = check(job, ["ingest"])
    (left_out,) = [line for line in report.warnings if "left out" in line]

    assert report.is_below_bar
    assert re.fullmatch(
        r"1 of \d\d tasks are left out: the rule is that .+ \(\w+\): weight-0", left_out
    )
    assert "`prbench check --accept` prints the lines" in report.warnings[-1]


@pytest.mark.parametrize(
    ("quality", "reason"),
    [
        ({"no_such_check": "warn"}, "no such check"),
        ({"verdict_value": "quarantine"}, "its policy is warn or fail"),
    ],
)
def test_an_impossible_policy_is_refused(
    bad_rows: Path, unchecked: Path, quality: dict[str, str], reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        check(job_on(bad_rows, unchecked, quality=quality))


WHITE_SPACE = ("\u00a0", "\u2003", "\u3000", "\x0b", "\x0c", "\u2028")
INVISIBLE = ("\u200b", "\ufeff \u200d", "\u2060", "\u3164")


def test_a_title_that_shows_nothing_is_empty_and_one_of_a_letter_is_not(tmp_path: Path) -> None:
    titles = (*WHITE_SPACE, *INVISIBLE, "0", "a", "u", "\\")
    file = kit.write_jsonl(
        tmp_path / "x.jsonl", [spoiled(f"t{title!a}", title=title) for title in titles]
    )
    ingest(job_on(file, tmp_path / "warehouse"))
    check(job_on(file, tmp_path / "warehouse"), ["ingest"])

    empty_titles = (*WHITE_SPACE, *INVISIBLE)
    assert {f"t{title!a}": {"title_not_empty"} for title in empty_titles} == refused(
        tmp_path / "warehouse"
    )


SAME_RESPONSE = {"benchmark": "prbench", "dataset_revision": kit.REVISION}
TASK = admitted(["t"], n_criteria=2) | {"criteria": [criterion("t", 0, 5), criterion("t", 1, 5)]}


def failing(published: Fill, **tables: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The keys that fail, by check; checks without failures are left out."""
    reader = published(TASK | tables)
    key = SAME_RESPONSE
    findings = run_suite(
        all_expectations({}),
        lambda table: reader.arrow(sql.read(f"checks/{table}"), key).to_pandas(),
    )
    rows: dict[str, list[str]] = defaultdict(list)
    for each in findings:
        rows[each.expectation.check] += [row.key for row in each.failures]
    return {check: keys for check, keys in rows.items() if keys}


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


def test_a_response_is_complete_and_not_empty(published: Fill) -> None:
    responses = [
        response("t", trial=trial) | {"status": status, "text": text}
        for trial, (status, text, _) in enumerate(TEXTS, start=1)
    ]
    rows = failing(published, responses=responses)

    for each, (status, text, checks) in zip(responses, TEXTS, strict=True):
        assert checks == {check for check, keys in rows.items() if each["response_id"] in keys}, (
            status,
            text,
        )


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


def test_a_verdict_has_the_value_of_its_status(published: Fill) -> None:
    of_response = response("t")
    of_criterion = TASK["criteria"][0]
    verdicts = [
        verdict(of_response, of_criterion, None, judge_trial=trial)
        | {
            "status": status,
            "value": value,
        }
        for trial, (status, value, _) in enumerate(VALUES, start=1)
    ]
    rows = failing(published, responses=[of_response], verdicts=verdicts)

    wrong = [
        row["verdict_id"]
        for row, (_, _, is_right) in zip(verdicts, VALUES, strict=True)
        if not is_right
    ]
    assert sorted(wrong) == sorted(rows["verdict_value"])


def test_a_verdict_without_its_response_or_its_criterion_is_found(published: Fill) -> None:
    of_response = response("t")
    (first, second) = TASK["criteria"]
    orphan = verdict(response("t", trial=9), first, 1.0)
    unasked = verdict(of_response, first | {"criterion_id": "another"}, 1.0)
    foreign = verdict(of_response | {"task_id": "u"}, second, 1.0) | {"verdict_id": "f"}
    whole = [verdict(of_response, each, 1.0) for each in (first, second)]
    rows = failing(published, responses=[of_response], verdicts=[*whole, orphan, unasked, foreign])

    assert [orphan["verdict_id"]] == rows.pop("verdict_has_response")
    assert sorted(["f", unasked["verdict_id"]]) == sorted(rows.pop("verdict_has_criterion"))
    assert rows == {}


def test_a_response_that_lacks_verdicts_is_a_warning_once_judging_began(published: Fill) -> None:
    begun, untouched, done = (response("t", trial=trial) for trial in (1, 2, 3))
    first, second = TASK["criteria"]
    verdicts = [verdict(begun, first, 1.0), verdict(done, first, 1.0), verdict(done, second, 0.0)]
    rows = failing(published, responses=[begun, untouched, done], verdicts=verdicts)

    assert set(rows) == {"verdict_count"}
    assert [begun["response_id"]] == [key.rpartition("/")[0] for key in rows["verdict_count"]]


def test_what_people_did_not_label_is_not_missing_beside_a_judge(published: Fill) -> None:
    usable = response("t")
    (first, second) = TASK["criteria"]
    judged = [verdict(usable, each, 1.0) for each in (first, second)]
    label = verdict(
        usable,
        first,
        1.0,
        judge="eva",
        judge_config_hash="imported",
        source="imported",
    )
    labellers = [row("labellers", judge="eva", import_batch="a-sheet")]

    assert (
        failing(
            published,
            responses=[usable],
            verdicts=[*judged, label],
            labellers=labellers,
        )
        == {}
    )
