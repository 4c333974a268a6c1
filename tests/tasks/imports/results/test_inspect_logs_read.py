"""Logs of Inspect AI: criteria, wherever its scorers store them, and known failures."""

import json
import re
import zipfile
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.cli.exchange import RESULT_FORMATS
from tasks.imports.results.formats import FORMATS
from tasks.imports.results.importing import import_results, text_after
from tasks.imports.results.inspect_decisions import ScoreDecisions, decisions_of
from tasks.imports.results.records import Archive, LogSource
from tasks.ingest import ingest
from tests.kit import Row, few_published, job_on, rows_in, values_in, write_jsonl
from tests.tasks.imports.conftest import refusal
from tests.tasks.imports.results.conftest import LOGS, brief_log, notes_of, unpacked
from tests.tasks.imports.results.harness_files import (
    example,
    m42,
    published,
    simple_evals,
    simple_evals_html,
)
from tests.tasks.imports.results.workload import UNREADABLE, rows

Document = Row
"""A JSON document of a log, or a part of it."""

pytestmark = pytest.mark.usefixtures("without_scores")

CUSTOMS = {
    "a list of objects": (
        {
            "metadata": {
                "x": [
                    {"id": "c1", "title": "One.", "criteria_met": True},
                    {"id": "c2", "criteria_met": False},
                ]
            }
        },
        [("c1", 1.0), ("c2", 0.0)],
        None,
    ),
    "a mapping among others": (
        {
            "metadata": {
                "cached": {"c1": False},
                "met": {"c1": True},
                "weights": {"c1": 1},
            }
        },
        [("c1", 1.0)],
        None,
    ),
    "a mapping of objects": (
        {"metadata": {"x": {"c1": {"met": "no"}, "c2": {"error": "HTTP 500"}}}},
        [("c1", 0.0), ("c2", None)],
        False,
    ),
    "the metadata itself": (
        {"metadata": {"c1": True, "c2": False, "judge": "x"}},
        [("c1", 1.0), ("c2", 0.0)],
        None,
    ),
    "an explanation with marks": (
        {
            "explanation": (
                "[✗] [-3] Two\n\nparagraphs.\n  No:\n  - x\n\n[✓] [2] Bare.\n\n[✓] [5] One.\n"
                "  Invalid grading response format: x"
            )
        },
        [("Two\n\nparagraphs.", 0.0), ("Bare.", 1.0), ("One.", None)],
        True,
    ),
    "words and states beside a decision": (
        {
            "metadata": {
                "x": [
                    {"criterion": "1", "verdict": "NOT MET"},
                    {"criterion": "2", "verdict": "MET"},
                    {"criterion": "3", "status": "ok", "score": 1},
                    {"criterion": "4", "verdict": "not_met"},
                ]
            }
        },
        [("1", 0.0), ("2", 1.0), ("3", 1.0), ("4", 0.0)],
        None,
    ),
    "a met criterion without a reason, of a tool that hides failures": (
        {
            "metadata": {
                "detailed_results": [
                    {
                        "criterion": "1",
                        "points": 5,
                        "met": True,
                        "explanation": "No explanation provided",
                    }
                ]
            }
        },
        [("1", 1.0)],
        True,
    ),
    "a score alone": (
        {"value": 0.5, "explanation": "Well done.", "metadata": {"points": 3}},
        [],
        None,
    ),
}


@pytest.mark.parametrize("case", CUSTOMS)
def test_decisions_are_found_in_each_custom(case):
    score, decisions, may_hide = CUSTOMS[case]

    score_decisions = decisions_of(score) or ScoreDecisions([], None)

    read_decisions = [
        (decision.criterion, decision.value) for decision in score_decisions.decisions
    ]
    assert read_decisions == decisions
    assert score_decisions.may_hide_failures is may_hide


def test_grades_by_position_are_of_the_rubric_in_its_order_and_may_hide_failures(
    job, tmp_path
):
    """As a scorer of another package stores them: grades and weights, without names of criteria."""

    def by_position(sample):
        sample["metadata"] = {"task": sample["id"]}
        for score in sample["scores"].values():
            items = score["metadata"]["criteria"]
            grades = ["true" if item["criteria_met"] else "false" for item in items]
            score["metadata"] = {
                "grades": grades,
                "weights": [item["weight"] for item in items],
            }

    with few_published("scores"):
        import_results(job, [brief_log(tmp_path, by_position)])

    query = """
        select distinct task_id, value
        from scores
        where score_name = 'score' and value is not null
    """
    expected_scores = {"sample-fin-2": 0.16, "sample-leg-2": -2 / 15}
    assert dict(values_in(job, query)) == pytest.approx(expected_scores)
    marks = values_in(job, "select distinct may_hide_failures from verdicts")
    assert marks == [(True,)]


@pytest.mark.parametrize("may_hide", [True, False])
def test_a_log_of_ours_states_for_each_decision_whether_it_may_hide_a_failure(
    job, tmp_path, may_hide
):
    def exported(sample: Document):
        for score in sample["scores"].values():
            for item in score["metadata"]["criteria"]:
                item["may_hide_failures"] = may_hide

    import_results(job, [brief_log(tmp_path, exported)])

    marks = values_in(job, "select distinct may_hide_failures from verdicts")
    assert marks == [(may_hide,)]


def test_one_of_several_tasks_with_one_conversation_has_to_be_named(tmp_path):
    twin = {**rows()[0], "task": "twin"}
    source = write_jsonl(tmp_path / "finance.jsonl", [*rows(), twin])
    job = job_on(source, tmp_path / "warehouse")
    ingest(job)

    def nameless(sample: Document):
        sample["id"] = None
        sample["metadata"] = {}

    line = refused(job, [brief_log(tmp_path, nameless)])

    assert "2 tasks with this conversation, none named by the log, are in" in line


def test_a_log_of_a_run_that_did_not_end_is_read_and_says_so(job, tmp_path):
    archive = Archive(LOGS / "brief.eval", (LOGS / "brief.eval").read_bytes())
    spec = archive.json("header.json")["eval"]
    names = [name for name in archive.names if name.startswith("samples/")]
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as log:
        start = {"version": 2, "eval": spec}
        log.writestr("_journal/start.json", json.dumps(start))
        log.writestr("samples/", "")  # as other programs pack folders
        for name in names[:2]:
            log.writestr(name, json.dumps(_moved_to_attachments(archive.json(name))))

    notes = notes_of(import_results(job, [tmp_path / "x.eval"]))

    assert "2 responses" in notes
    assert "the log's status is started" in notes


def _moved_to_attachments(sample: Document) -> Document:
    """A sample whose texts are moved to its attachments, as in logs of agents."""
    attachments = {}
    for number, message in enumerate(sample["input"]):
        attachments[str(number)] = message["content"]
        message["content"] = f"attachment://{number}"
    return {**sample, "attachments": attachments}


PIECES = st.sampled_from(["a", "b", "\n", " ", ":", "user: ", "assistant: "])
TEXTS = st.lists(PIECES, min_size=1, max_size=12).map("".join)


@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_the_response_is_the_text_after_the_conversation(turns, text):
    if len(turns) % 2 == 0:
        turns = turns[1:]  # the last turn is the user's
    messages = list(zip(cycle(("user", "assistant")), turns, strict=False))
    transcript = "".join(f"{role}: {turn}\n" for role, turn in messages)

    prompt_and_response = f"{transcript}assistant: {text.strip()}".strip()

    assert text_after(messages, prompt_and_response) == text.strip()


LOST = "Failed to parse judge response"
NO_DECISIONS = {
    "nothing under the first key, and points for it": (
        {"met": None, "score": 0, "error": "judge timed out"},
        "timeout",
        "judge timed out",
        False,
    ),
    "a status that is none of ours": (
        {"status": "error", "value": 0},
        "parse_error",
        "the log's status is error",
        False,
    ),
    **{
        f"{reason} for an explanation": (
            {"met": False, "explanation": reason},
            "parse_error",
            reason,
            True,
        )
        for reason in (
            "Could not parse grading response: x",
            "No explanation provided",
        )
    },
    "a status that is no text": (
        {"status": {"code": 1}},
        "parse_error",
        "the log has \"{'code': 1}\"",
        None,
    ),
    "an exception as the reason": (
        {"met": False, "explanation": f"{LOST}: Error code: 500 - {{'error': 'x'}}"},
        "provider_error",
        LOST,
        True,
    ),
    "an HTTP error": (
        {"met": None, "error": "HTTP 429: slow down"},
        "provider_error",
        "HTTP 429",
        False,
    ),
    "an HTTP error about length": (
        {"met": None, "error": "status_code=400 maximum context"},
        "context_length",
        "status_code",
        False,
    ),
    "a value between": (
        {"score": 0.7},
        "parse_error",
        "the log has '0.7', which is neither met, partly met nor unmet",
        None,
    ),
}


@pytest.mark.parametrize("case", NO_DECISIONS)
def test_what_is_no_decision_is_a_failure_with_its_cause(case):
    item, status, cause, may_hide = NO_DECISIONS[case]
    items = [{"criterion": "One.", **item}, {"criterion": "Two.", "met": True}]

    score_decisions = decisions_of({"metadata": {"criteria": items}})

    assert score_decisions is not None
    assert score_decisions.may_hide_failures is may_hide
    failure, decision = score_decisions.decisions
    assert failure.value is None
    assert failure.status == status
    assert failure.error is not None
    assert failure.error.startswith(cause)
    assert decision.value == 1.0


@pytest.mark.parametrize(
    "metadata", [{}, {"is_cached": True, "checks": {"is_long": False}}]
)
def test_a_log_without_criteria_brings_responses_alone(metadata, job, tmp_path):
    def bare(sample):
        for score in sample["scores"].values():
            score["metadata"] = metadata

    notes = notes_of(import_results(job, [brief_log(tmp_path, bare)]))
    assert "6 responses and 0 verdicts imported" in notes
    assert "4 responses have scores but no criteria that can be read" in notes
    assert "in the log" not in notes


LIMITS = {
    ("sample-fin-2", 1): ("token", "truncated"),
    ("sample-fin-2", 2): ("time", "timeout"),
    ("sample-leg-2", 1): ("cost", "provider_error"),
}
"""Sample and epoch -> the kind of limit, and the status that it stands for."""


@pytest.mark.slow
def test_a_response_that_was_stopped_at_a_limit_is_a_failure(job, tmp_path):
    def limited(sample):
        cell = (sample["id"], sample["epoch"])
        if cell in LIMITS:
            sample["limit"] = {
                "type": LIMITS[cell][0],
                "limit": 10.0,
                "reason": "Exceeded.\nBy 8.",
            }

    import_results(job, [brief_log(tmp_path, limited)])

    failures = values_in(
        job,
        "select task_id, trial, status, text, error from responses"
        " where error like 'stopped%' order by all",
    )
    assert failures == [
        (*cell, status, None, f"stopped at the {kind} limit: Exceeded. By 8.")
        for cell, (kind, status) in LIMITS.items()
    ]


def test_a_known_failure_does_not_give_way_to_a_decision_that_may_hide_it(
    job, tmp_path
):
    labels = {"model": "thorough", "judge": "strict"}
    import_results(job, [LOGS / "thorough.eval"], **labels)
    query = """
        select trial, status, value
        from verdicts
        where task_id = ? and value is null
        order by trial
    """
    failures = [(1, "parse_error", None), (2, "parse_error", None)]
    assert values_in(job, query, UNREADABLE[1]) == failures

    same_responses = edited(
        published(tmp_path / "q.json"),
        lambda document: document["outputs"].pop("brief"),
    )
    notes = notes_of(import_results(job, [same_responses], **labels))

    assert values_in(job, query, UNREADABLE[1]) == failures
    cause = "a failure of the call is stored and the tool may hide failures"
    assert f"1 decisions left out, because {cause}" in notes


LEG = "sample-leg-2"
refused = partial(refusal, import_results)
Edit = Callable[[Document], object]


def edited(file: Path, edit: Edit) -> Path:
    document = json.loads(file.read_text())
    edit(document)
    file.write_text(json.dumps(document))
    return file


def invalidated(sample: Document):
    if sample["id"] == "sample-fin-2":
        sample["invalidation"] = {"author": "eva"}


def test_invalidated_samples_are_left_out_and_counted(job, tmp_path):
    log = edited(
        brief_log(tmp_path, invalidated),
        lambda document: document.update(invalidated=True),
    )

    notes = notes_of(import_results(job, [log]))

    responses = rows_in(job, "from responses")
    assert "\n2 invalidated samples left out" in notes
    assert len(responses) == 4
    assert "sample-fin-2" not in {row["task_id"] for row in responses}


def test_a_log_whose_samples_are_all_invalidated_is_refused_with_their_number(
    shared, tmp_path
):
    log = brief_log(
        tmp_path,
        lambda sample: sample.update(invalidation={"author": "eva"}),
    )

    line = refused(shared, [log])

    assert "x.json: holds nothing to import (6 invalidated samples left out)" in line


def test_an_invalidated_log_that_does_not_say_which_samples_is_refused(
    shared, tmp_path
):
    log = edited(
        brief_log(tmp_path),
        lambda document: document.update(invalidated=True),
    )

    line = refused(shared, [log])

    assert "x.json: the log is invalidated, and no sample says that it is" in line


def _of_version_1(document: Document):
    document["version"] = 1
    for sample in document["samples"]:
        for scorer, score in (sample.pop("scores") or {}).items():
            sample["score"] = score
            document["results"] = {"scorer": {"name": scorer, "params": {}}}


def test_a_log_of_version_1_has_the_verdicts_of_the_same_log_of_version_2(
    job, tmp_path
):
    import_results(job, [LOGS / "brief.json"])
    log = edited(brief_log(tmp_path), _of_version_1)

    notes = notes_of(import_results(job, [log]))

    assert "0 responses and 0 verdicts imported, 52 already present" in notes
    assert "have scores but no criteria" not in notes


@pytest.mark.parametrize("model", ["org/brief", "org/team/brief"])
def test_a_folder_of_evalscope_is_read_whose_model_has_a_slash_in_its_name(
    job, tmp_path, model
):
    folder = unpacked("evalscope", tmp_path)
    for kind in ("predictions", "reviews", "reports"):
        (folder / kind / model).parent.mkdir(parents=True, exist_ok=True)
        (folder / kind / "brief").rename(folder / kind / model)
    for file in folder.rglob("*.jsonl"):
        text = file.read_text()
        file.write_text(text.replace('"model": "brief"', f'"model": "{model}"'))

    import_results(job, [folder], skip_unknown=True)

    assert (model,) in values_in(job, "select distinct model from responses")
    assert values_in(job, f"select 1 from verdicts where model = '{model}'") != []


REVIEWS = "reviews/brief/prbench_finance.jsonl"


def test_rows_of_evalscope_without_an_index_are_refused(shared, tmp_path):
    log = unpacked("evalscope", tmp_path)
    file = log / REVIEWS
    file.write_text(file.read_text().replace('"index"', '"other"'))

    line = refused(shared, [log])

    assert f"{file}: a row has no whole number as `index`" in line


def _reply_of(sample: Document) -> Any:
    return sample["output"]["choices"][0]["message"]


def _criterion_of(sample: Document) -> Any:
    [score] = sample["scores"].values()
    return score["metadata"]["criteria"][0]


@pytest.mark.parametrize(
    ("part_of", "change", "reason"),
    [
        (_reply_of, {"content": 5}, "`content` is not a text"),
        (_reply_of, {"content": {"a": 1}}, "(its type is dict)"),
        (
            _reply_of,
            {"content": [{"type": "image", "image": "x.png"}]},
            "`content` has a part that is not a text (its type is image)",
        ),
        (
            lambda sample: sample["input"][0],
            {"content": 5},
            "`content` is not a text (its type is int)",
        ),
        (
            _criterion_of,
            {"explanation": ["No."]},
            "`explanation` is not a text (its type is list)",
        ),
    ],
)
def test_what_is_no_text_in_a_log_is_refused_with_its_sample(
    shared, tmp_path, part_of, change, reason
):
    def edit(sample):
        if sample["id"] == "sample-fin-2":
            part_of(sample).update(change)

    log = brief_log(tmp_path, edit)

    line = refused(shared, [log])

    assert "x.json: sample sample-fin-2, epoch 1: " in line
    assert reason in line


def test_messages_in_parts_of_a_log_are_their_text(job, tmp_path):
    def split(sample):
        for choice in sample["output"]["choices"]:
            text = {"type": "text", "text": choice["message"]["content"]}
            search = {
                "type": "tool_use",
                "tool_type": "web_search",
                "arguments": "{}",
                "result": "x",
            }
            choice["message"]["content"] = [
                {"type": "reasoning", "reasoning": "Hm."},
                search,
                text,
            ]
        for message in sample["input"]:
            text = {"type": "text", "text": message["content"]}
            message["content"] = [text, {"type": "image", "image": "x.png"}]

    import_results(job, [LOGS / "brief.json"])
    assert import_results(job, [brief_log(tmp_path, split)])[0].rows == 0


def _another_turn(document: Document):
    output = document["outputs"]["thorough"][LEG]
    output["convo"] = output["convo"].replace("small claims", "high", 1)


def _another_task(document: Document):
    for outputs in document["outputs"].values():
        outputs["elsewhere"] = {**outputs.pop(LEG), "id": "elsewhere"}


def _without_references(document: Document):
    output = document["outputs"]["thorough"]["sample-fin-3"]
    head, _, tail = output["convo"].partition("Reference Text 0:")
    _, _, rest = tail.partition("expect to use the extension option.\n\n")
    output["convo"] = head + rest


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (
            _another_turn,
            f"task {LEG} has another conversation in this data set than in the log",
        ),
        (_without_references, "than in the log"),
        (_another_task, "task 'elsewhere' is not in revision"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_location(
    shared, tmp_path, edit, reason
):
    line = refused(shared, [edited(published(tmp_path / "p.json"), edit)])
    assert reason in line.partition("p.json: ")[2]


@pytest.mark.parametrize("number", [-5, 10**9, 1.5, True, "first"])
def test_an_impossible_trial_is_always_refused(shared, tmp_path, number):
    reason = f"is {number!r}; it is a whole number from "

    log = brief_log(tmp_path, lambda sample: sample.update(epoch=number))
    location = f"x.json: sample sample-fin-2, epoch {number}"
    assert f"{location}: `epoch` {reason}1 to 10000" in refused(shared, [log])

    log = published(tmp_path / "p.json", trial_number=number)
    assert f"p.json: `trial_number` {reason}0" in refused(shared, [log])

    log = unpacked("evalscope", tmp_path)
    file = log / REVIEWS
    repetition = f'"repeat_id": {json.dumps(number)}'
    file.write_text(re.sub('"repeat_id": [0-9]+', repetition, file.read_text()))
    location = "brief, prbench_finance, index 0"
    assert f"{location}: `repeat_id` {reason}0 to 9999" in refused(shared, [log])


def test_what_does_not_fit_can_be_skipped_and_is_listed(job, tmp_path):
    file = edited(published(tmp_path / "p.json"), _another_task)

    notes = notes_of(import_results(job, [file], skip_unknown=True))
    assert re.search(
        r"4 responses[\s\S]*2 rows skipped: .*task 'elsewhere' is not in revision",
        notes,
    )


def test_a_task_that_is_not_admitted_is_named_as_the_cause_of_a_difference(tmp_path):
    source = write_jsonl(tmp_path / "finance.jsonl", rows())
    job = job_on(source, tmp_path / "warehouse")
    ingest(job)

    notes = notes_of(import_results(job, [published(tmp_path / "p.json")]))

    cause = "the checks have not admitted the task here"
    assert f"sample-fin-2 trial 1 (0.6000 and no score: {cause})" in notes


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.jsonl", '{"task": "t", "model": "m", "response": "A."}\n'),
        ("x.html", "<h1>Hello</h1>"),
        ("x.json", '{"score": 0.5, "overall_score": 0.5}'),
    ],
)
def test_what_is_no_log_is_refused_and_formats_are_named(
    shared, tmp_path, name, content
):
    (tmp_path / name).write_text(content)

    line = refused(shared, [tmp_path / name])

    formats = "a result of the published PRBench harness, a log of Inspect AI"
    assert f"{name}: is not one of: {formats}" in line


def examples() -> list[Document]:
    return [example("m", row) for row in rows("healthbench")]


WRITERS = [
    ("prbench", lambda folder: published(folder / "x")),
    ("inspect", lambda _: LOGS / "brief.eval"),
    ("inspect", lambda _: LOGS / "brief.json"),
    ("evalscope", lambda folder: unpacked("evalscope", folder)),
    ("simple-evals", lambda folder: simple_evals(folder / "x", examples())),
    ("simple-evals", lambda folder: simple_evals_html(folder / "x", examples())),
    ("m42", lambda folder: m42(folder / "x", rows("healthbench"))),
    ("m42", lambda folder: m42(folder / "x", rows("healthbench")[:1])),
]


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_each_log_is_recognised_by_its_content_and_by_one_format_alone(
    tmp_path, name, write
):
    source = LogSource(write(tmp_path))

    names = [
        name for name, log_format in FORMATS.items() if log_format.recognises(source)
    ]

    assert names == [name]


@pytest.mark.parametrize("cell", ["[{", "[{[]: 1}]"])
def test_a_cell_of_m42_that_cannot_be_read_is_refused_with_its_row(
    cell, shared, tmp_path
):
    file = m42(tmp_path / "x.jsonl", rows("healthbench"))
    lines = file.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {"responses": cell})
    file.write_text("\n".join(lines))

    line = refused(shared, [file], model="thorough", judge="llama")

    assert "row 2: `responses` is no list; correct the row" in line


def test_a_log_of_another_format_than_the_named_one_is_refused(shared):
    line = refused(shared, [LOGS / "brief.eval"], format_name="m42")

    assert "brief.eval: is not a result file of m42's code" in line


def test_the_command_offers_all_formats():
    assert tuple(FORMATS) == RESULT_FORMATS


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 3],
        lambda content: content[:-200],
        lambda content: (
            content[:3000] + bytes([content[3000] ^ 0xFF]) + content[3001:]
        ),
    ],
)
def test_a_damaged_log_is_refused_in_one_line(shared, tmp_path, damage):
    (tmp_path / "x.eval").write_bytes(damage((LOGS / "brief.eval").read_bytes()))
    (tmp_path / "x.json").write_bytes((LOGS / "brief.json").read_bytes()[:-200])

    assert "x.eval" in refused(shared, [tmp_path / "x.eval"])
    assert "x.json: is not JSON (" in refused(shared, [tmp_path / "x.json"])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (
            {"model": "one"},
            "has brief, thorough; write {model} where its name belongs",
        ),
        ({"model": " "}, "the label is blank"),
        ({"judge": ""}, "label is blank"),
    ],
)
def test_impossible_labels_are_refused(shared, tmp_path, labels, reason):
    assert reason in refused(shared, [published(tmp_path / "p.json")], **labels)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({}, "names no model; give its label"),
        ({"model": "m", "judge": "{judge} again"}, "names no judge"),
    ],
)
def test_a_log_without_names_needs_labels(health_data, tmp_path, labels, reason):
    log = simple_evals(tmp_path / "s.json", examples())

    assert reason in refused(health_data, [log], **labels)


def test_nothing_of_a_log_is_stored_if_one_beside_it_does_not_fit(shared, tmp_path):
    log = published(tmp_path / "p.json")
    unfit_log = edited(published(tmp_path / "wrong.json"), _another_turn)

    assert "another conversation" in refused(
        shared, [log, unfit_log], model="m {model}"
    )


def test_a_log_on_another_benchmark_is_refused(health_data, tmp_path):
    log = published(tmp_path / "p.json")

    assert "is not in revision" in refused(health_data, [log])


def test_a_verdict_that_differs_from_a_stored_one_is_refused(job, tmp_path):
    file = published(tmp_path / "p.json")
    import_results(job, [file])

    def flip(document):
        grades = document["outputs"]["thorough"][LEG]["grades"]
        grades[0] = "false" if grades[0] == "true" else "true"

    line = refused(job, [edited(file, flip)])

    verdict = r"judge strict, value [01], import batch \w{16}"
    assert re.search(rf"a different verdict already exists \({verdict}\)", line)
