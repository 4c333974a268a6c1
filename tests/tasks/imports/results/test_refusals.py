"""What is no log, or does not fit the data set: refused in one line, with nothing stored."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.imports import RESULT_FORMATS
from tasks.config.job import Job
from tasks.imports.results.formats import FORMATS
from tasks.imports.results.importing import import_results
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError
from tests.kit import job_on, write_jsonl
from tests.tasks.imports.results.conftest import LOGS, notes_of, unpacked
from tests.tasks.imports.results.made_files import example, m42, published, simple_evals, simple_evals_html
from tests.tasks.imports.results.workload import rows

Edit = Callable[[dict[str, Any]], None]
LEG = "sample-leg-2"


def refused(job: Job, files: list[Path], **options: Any) -> str:
    """The one line of a refusal, after which no part was added."""
    before = sorted((job.warehouse / "parts").rglob("*.parquet"))
    with pytest.raises(PipelineError) as caught:
        import_results(job, files, **options)
    assert before == sorted((job.warehouse / "parts").rglob("*.parquet"))
    assert 1 == len(str(caught.value).splitlines())
    return str(caught.value)


def edited(file: Path, edit: Edit) -> Path:
    document = json.loads(file.read_text(encoding="utf-8"))
    edit(document)
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def _of(document: dict[str, Any]) -> dict[str, Any]:
    output: dict[str, Any] = document["outputs"]["thorough"][LEG]
    return output


def _another_turn(document: dict[str, Any]) -> None:
    _of(document)["convo"] = _of(document)["convo"].replace("small claims", "high", 1)


def _another_text(document: dict[str, Any]) -> None:
    _of(document)["rubric_texts"][0] += " And more."


def _another_grade(document: dict[str, Any]) -> None:
    _of(document)["grades"][0] = "perhaps"


def _a_grade_less(document: dict[str, Any]) -> None:
    _of(document)["grades"].pop()


def _another_task(document: dict[str, Any]) -> None:
    for outputs in document["outputs"].values():
        outputs["elsewhere"] = {**outputs.pop(LEG), "id": "elsewhere"}


def _without_references(document: dict[str, Any]) -> None:
    output = document["outputs"]["thorough"]["sample-fin-3"]
    head, _, tail = output["convo"].partition("Reference Text 0:")
    output["convo"] = head + tail.partition("expect to use the extension option.\n\n")[2]


MISFITS: dict[str, tuple[Edit, str]] = {
    "another conversation": (_another_turn, f"task {LEG} has another conversation in this data set than in the log"),
    "reference texts left out": (_without_references, "than in the log (here it has reference texts, which some"),
    "an unknown criterion": (_another_text, f"task {LEG} has no criterion"),
    "an unknown grade": (_another_grade, "a grade is 'perhaps'"),
    "a grade less": (_a_grade_less, "12 rubric_texts, 11 grades"),
    "an unknown task": (_another_task, "task 'elsewhere' is not in revision"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_is_refused_with_its_place(finance: Job, tmp_path: Path, case: str) -> None:
    edit, reason = MISFITS[case]

    line = refused(finance, [edited(published(tmp_path / "p.json"), edit)])
    assert reason in line
    assert "p.json: " in line


@pytest.mark.parametrize("number", [-5, 10**9, 1.5, True, "first"])
def test_an_impossible_trial_or_judging_is_always_refused(finance: Job, tmp_path: Path, number: object) -> None:
    def of_sample(document: dict[str, Any]) -> None:
        document["samples"][0]["epoch"] = number

    def of_config(document: dict[str, Any]) -> None:
        document["config"]["trial_number"] = number

    shutil.copy(LOGS / "brief.json", tmp_path / "x.json")
    said = f"is {number!r}; it is a whole number from "
    line = refused(finance, [edited(tmp_path / "x.json", of_sample)])
    assert f"x.json: sample sample-fin-2, epoch {number}: `epoch` {said}1 to 10000" in line
    assert f"p.json: `trial_number` {said}0" in refused(finance, [edited(published(tmp_path / "p.json"), of_config)])
    for name in ("generation_index", "repeat_id"):
        folder = unpacked("evalscope", tmp_path / name)
        file = folder / "reviews" / "brief" / "prbench_finance.jsonl"
        changed = re.sub(rf'"{name}": \d+', f'"{name}": {json.dumps(number)}', file.read_text(encoding="utf-8"))
        file.write_text(changed, encoding="utf-8")
        assert f"brief, prbench_finance, index 0: `{name}` {said}0 to 9999" in refused(finance, [folder])


def test_a_trial_in_a_files_name_that_cannot_be_is_refused(finance: Job, tmp_path: Path) -> None:
    def without(document: dict[str, Any]) -> None:
        del document["config"]["trial_number"]

    file = edited(published(tmp_path / "p_trial_1000000000_x.json"), without)
    assert "`trial_number` is '1000000000'" in refused(finance, [file])


def test_what_does_not_fit_can_be_skipped_and_is_listed(job: Job, tmp_path: Path) -> None:
    file = edited(published(tmp_path / "p.json"), _another_task)

    said = notes_of(import_results(job, [file], skip_unknown=True))
    assert "4 responses and 37 verdicts imported" not in said
    assert "4 responses" in said
    assert "2 rows skipped: " in said
    assert "task 'elsewhere' is not in revision" in said


def test_a_task_that_is_not_admitted_is_named_as_the_cause_of_a_difference(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "finance.jsonl", rows())
    job = job_on(source, tmp_path / "warehouse")
    ingest(job)

    said = notes_of(import_results(job, [published(tmp_path / "p.json")]))
    assert "sample-fin-2 (0.6000 and no score: the checks have not admitted the task here)" in said


NO_LOGS: dict[str, tuple[str, bytes]] = {
    "rows": ("x.jsonl", b'{"task": "t", "model": "m", "response": "A."}\n'),
    "an object": ("x.json", b'{"t": "A."}'),
    "a text": ("x.html", b"<h1>Hello</h1>"),
    "bytes": ("x.bin", b"\xff\xfe\x00"),
    "nothing": ("x.json", b""),
    "metrics alone": ("x.json", b'{"score": 0.5, "overall_score": 0.5}'),
}


@pytest.mark.parametrize("case", NO_LOGS)
def test_what_is_no_log_is_refused_and_the_formats_are_named(finance: Job, tmp_path: Path, case: str) -> None:
    name, content = NO_LOGS[case]
    (tmp_path / name).write_bytes(content)

    line = refused(finance, [tmp_path / name])
    assert f"{name}: is not one of: a result of the published PRBench harness, a log of Inspect AI" in line


def test_each_log_is_recognised_by_its_content_and_by_one_format_alone(tmp_path: Path) -> None:
    from tasks.imports.results.records import Source

    health = rows("healthbench")
    examples = [example("m", row) for row in health]
    logs = {
        "prbench": [published(tmp_path / "a")],
        "inspect": [LOGS / "brief.eval", LOGS / "brief.json"],
        "evalscope": [unpacked("evalscope", tmp_path)],
        "simple-evals": [simple_evals(tmp_path / "b", examples), simple_evals_html(tmp_path / "c", examples)],
        "m42": [m42(tmp_path / "d", "thorough", health), m42(tmp_path / "e", "thorough", health[:1])],
    }
    for name, files in logs.items():
        assert [[name]] * len(files) == [
            [known for known, each in FORMATS.items() if each.is_of(Source(file))] for file in files
        ]
    assert tuple(FORMATS) == RESULT_FORMATS


def test_a_named_format_that_a_file_is_not_in_is_refused(finance: Job) -> None:
    assert "brief.eval: is not a result file of m42's code" in refused(
        finance, [LOGS / "brief.eval"], format_name="m42"
    )


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.98])
def test_a_damaged_log_is_refused_in_one_line(finance: Job, tmp_path: Path, cut: float) -> None:
    content = (LOGS / "brief.eval").read_bytes()
    (tmp_path / "x.eval").write_bytes(content[: int(cut * len(content))])

    assert "x.eval" in refused(finance, [tmp_path / "x.eval"])


def test_a_member_with_a_wrong_byte_is_refused(finance: Job, tmp_path: Path) -> None:
    content = bytearray((LOGS / "brief.eval").read_bytes())
    content[3000] ^= 0xFF
    (tmp_path / "x.eval").write_bytes(content)

    assert "cannot be read" in refused(finance, [tmp_path / "x.eval"])


def test_labels_that_cannot_be_are_refused(finance: Job, health_data: Job, tmp_path: Path) -> None:
    both = published(tmp_path / "p.json")
    assert "has brief, thorough; write {model} where its name belongs" in refused(finance, [both], model="one")

    nameless = simple_evals(tmp_path / "s.json", [example("m", row) for row in rows("healthbench")])
    assert "names no model; give its label with --as" in refused(health_data, [nameless])
    assert "names no judge" in refused(health_data, [nameless], model="m", judge="{judge} again")


def test_of_several_logs_one_that_does_not_fit_keeps_all_out(finance: Job, tmp_path: Path) -> None:
    wrong = edited(published(tmp_path / "wrong.json"), _another_turn)

    assert "another conversation" in refused(finance, [published(tmp_path / "good.json"), wrong], model="m {model}")


def test_another_verdict_in_the_place_of_a_stored_one_is_refused(job: Job, tmp_path: Path) -> None:
    file = published(tmp_path / "p.json")
    import_results(job, [file])

    def flip(document: dict[str, Any]) -> None:
        grades = _of(document)["grades"]
        grades[0] = "false" if grades[0] == "true" else "true"

    line = refused(job, [edited(file, flip)])
    assert "a different verdict already exists (model thorough, trial 1, judge strict, import batch " in line


def test_logs_of_another_benchmark_are_refused(health_data: Job, tmp_path: Path) -> None:
    assert "is not in revision" in refused(health_data, [published(tmp_path / "p.json")])


def test_two_runs_in_a_folder_that_contradict_each_other_are_refused(finance: Job, tmp_path: Path) -> None:
    folder = unpacked("evalscope", tmp_path)
    for run in ("first", "second"):
        shutil.copytree(folder, tmp_path / "outputs" / run)
    file = tmp_path / "outputs" / "second" / "reviews" / "brief" / "prbench_finance.jsonl"
    text = file.read_text(encoding="utf-8")
    assert '"criteria_met": true' in text
    file.write_text(text.replace('"criteria_met": true', '"criteria_met": false'), encoding="utf-8")

    assert "a different verdict already exists" in refused(finance, [tmp_path / "outputs"])
