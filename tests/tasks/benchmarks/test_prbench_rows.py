"""A row of PRBench as a task: what is read, from which field, and what is left out."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.benchmarks.base import RowError
from tasks.benchmarks.prbench import SEVERITIES, VOCABULARIES, parse_row
from tasks.benchmarks.rows import split_labels
from tasks.dataset.source import read_rows
from tasks.rules.conversation import build_messages
from tasks.rules.records import Criterion, Task
from tests.kit import SHARED_DATA, good_row
from tests.tasks.dataset.rows import hub_criterion, hub_row

WEIGHT_FIELDS = [f"{severity.replace(' ', '_')}_weight" for severity in SEVERITIES]


def only_criterion(item: Any) -> Criterion:
    [criterion] = parse_row(hub_row("t", rubric=[item])).criteria
    return criterion


# rubrics


@pytest.mark.parametrize("severity", SEVERITIES)
def test_the_weight_is_the_field_that_the_weight_class_names(severity):
    weights = dict.fromkeys(WEIGHT_FIELDS, 99)
    weights[f"{severity.replace(' ', '_')}_weight"] = 7

    assert only_criterion(hub_criterion("c", severity, 7, **weights)).weight == 7.0


@pytest.mark.parametrize(
    ("value", "weight", "text"),
    [
        (5, 5.0, None),
        (2.5, 2.5, None),
        (0, 0.0, None),
        (-11, -11.0, None),
        ("five", None, "five"),
        ("", None, ""),
        (True, None, "True"),
        ([5], None, "[5]"),
        (float("inf"), None, "inf"),
        (float("nan"), None, "nan"),
        (10**400, None, str(10**400)),
    ],
)
def test_a_number_is_the_weight_and_all_else_a_text(value, weight, text):
    criterion = only_criterion(hub_criterion("c", "important", value))

    assert criterion.weight == weight
    assert criterion.weight_text == text


@pytest.mark.parametrize(
    "weight_class", [None, "", "Important", "very important", "important "]
)
def test_a_weight_class_that_names_no_field_gives_no_weight(weight_class):
    item = hub_criterion("c", "important", 5)
    item["annotations"]["weight_class"] = weight_class

    criterion = only_criterion(item)

    assert criterion.weight is None
    assert criterion.severity == weight_class


def test_a_weight_class_that_names_an_empty_field_gives_no_weight():
    item = hub_criterion(
        "c",
        "important",
        5,
        important_weight=None,
        critically_important_weight=9,
    )

    criterion = only_criterion(item)

    assert criterion.weight is None
    assert criterion.weight_text is None
    assert criterion.severity == "important"


@pytest.mark.parametrize("item", [None, "text", {}, {"annotations": "text"}])
def test_a_criterion_that_is_no_criterion_is_still_counted(item):
    criterion = only_criterion(item)

    assert criterion.criterion_id == "position-0"
    assert criterion.position == 0
    assert criterion.title == ""
    assert criterion.weight is None


# rows


@pytest.mark.parametrize("task_id", [None, "", "  ", float("nan")])
def test_a_row_without_a_task_id_is_refused(task_id):
    with pytest.raises(RowError, match="no task id"):
        parse_row(hub_row("t", task=task_id))


# conversations


@pytest.mark.parametrize("form", [tuple, lambda texts: [*texts, None, " "]])
def test_reference_texts_stand_in_front_in_every_form_that_they_arrive_in(form):
    task = parse_row(hub_row("t", reference_texts_0=form(["First.", "Second."])))

    prompt = (
        "Reference Text 0:\nFirst.\n\nReference Text 1:\nSecond.\n\nWhat does t cost?"
    )
    assert build_messages(task.conversation) == (("user", prompt),)
    assert task.has_reference_texts


@pytest.mark.parametrize(
    ("changes", "pattern"),
    [
        ({}, "u"),
        (
            {
                "turns": 2,
                "response_0": "a",
                "prompt_1": "u",
            },
            "uau",
        ),
        ({"turns": 2, "response_0": "a"}, "ua"),
        ({"turns": 2, "prompt_1": "u"}, "u-u"),
        ({"turns": 1, "prompt_0": ""}, "e"),
        (
            {
                "turns": 2,
                "response_0": "a",
                "prompt_1": "",
            },
            "uae",
        ),
        (
            {
                "turns": 3,
                "response_0": "a",
                "response_1": "a",
                "prompt_2": "u",
            },
            "uaeau",
        ),
        (
            {
                "turns": 1,
                "prompt_0": None,
                "response_0": None,
                "prompt_1": "u",
            },
            "e-u",
        ),
        (
            {
                "turns": 1,
                "response_0": "a",
                "prompt_1": "u",
            },
            "uau",
        ),
        (
            {
                "turns": 0,
                "prompt_0": None,
                "reference_texts_0": [],
            },
            "",
        ),
        (
            {
                "turns": 0,
                "prompt_0": None,
                "reference_texts_0": ["a text that nobody asks about"],
            },
            "e",
        ),
    ],
)
def test_the_turn_pattern_is_the_shape_of_the_conversation(changes, pattern):
    assert parse_row(hub_row("t", **changes)).turn_pattern == pattern


@pytest.mark.parametrize("turns", [None, "2", 1.5, True, float("nan")])
def test_a_number_of_turns_that_is_none_is_not_guessed(turns):
    assert parse_row(hub_row("t", turns=turns)).turns is None


def token(lowest: str, highest: str) -> st.SearchStrategy[str]:
    characters = st.characters(min_codepoint=ord(lowest), max_codepoint=ord(highest))
    return st.text(characters, min_size=4, max_size=12)


# Three scripts that the made-up rows do not use, so that no token can be in another by chance.
@settings(max_examples=40)
@given(
    canary=token("一", "龥"),
    notes=token("α", "ω"),
    model=token("а", "я"),
    n_turns=st.integers(1, 10),
)
def test_canary_notes_and_model_names_are_in_no_message(
    canary, notes, model, n_turns
):
    row = good_row(
        "t",
        turns=n_turns,
        canary=canary,
        scratchpad=notes,
    )
    for number in range(n_turns):
        row[f"prompt_{number}"] = f"u{number}"
    for number in range(n_turns - 1):
        row[f"response_{number}"] = f"a{number}"
        row[f"model_{number}"] = model

    task = parse_row(row)

    text = "\n".join(map("".join, build_messages(task.conversation)))
    for absent_token in (canary, notes, model):
        assert absent_token not in text
    assert notes not in repr(task)
    assert model not in repr(task)


# comma-separated labels, some of which contain commas

LABELS = st.sampled_from(
    [vocabulary for kinds in VOCABULARIES.values() for vocabulary in kinds.values()]
)


@given(LABELS, st.data(), st.sampled_from([", ", ","]))
def test_joining_and_splitting_labels_gives_them_back(vocabulary, data, joiner):
    labels = data.draw(st.lists(st.sampled_from(sorted(vocabulary)), unique=True))

    assert split_labels(joiner.join(labels), vocabulary) == tuple(labels)


def test_an_unknown_label_between_known_ones_is_kept():
    vocabulary = VOCABULARIES["Finance"]["decision_type"]
    labels = ("Other", "Planning & Forecast", "Operations, Processes & Controls")

    assert split_labels(", ".join(labels), vocabulary) == labels


def test_a_label_that_begins_like_a_known_one_is_another_label():
    labels = split_labels("Compliance Programmes,Compliance", {"Compliance"})

    assert labels == ("Compliance Programmes", "Compliance")


@given(
    st.text(alphabet=", aB&", max_size=30),
    st.sets(st.sampled_from(["a", "B", "a, B", "a & B", "aB"])),
)
def test_no_letter_of_a_list_is_lost(text, vocabulary):
    labels = split_labels(text, vocabulary)

    assert parts_of(",".join(labels)) == parts_of(text)


def parts_of(text: str) -> set[str]:
    """Return the texts between commas, without empty ones."""
    return set(filter(None, map(str.strip, text.split(","))))


# real rows, if there are any beside the checkout


def real(name: str) -> list[Task]:
    path = SHARED_DATA / "prbench" / name
    if not path.is_file():
        pytest.skip(f"real data are not beside the checkout: {name}")
    return [parse_row(row) for row in read_rows(path)]


def criteria_of(tasks: list[Task]) -> list[Criterion]:
    return [criterion for task in tasks for criterion in task.criteria]


def test_the_real_finance_split_has_the_numbers_of_its_raw_file():
    tasks = real("finance_hard.parquet")
    criteria = criteria_of(tasks)

    assert len(tasks) == 300
    assert len(criteria) == 5085
    assert max(len(task.criteria) for task in tasks) == 30
    assert sum((criterion.weight or 0) < 0 for criterion in criteria) == 364
    assert sum((task.turns or 0) > 1 for task in tasks) == 136
    assert sum(task.has_reference_texts for task in tasks) == 10


def test_the_real_legal_split_has_the_numbers_of_its_raw_file():
    tasks = real("legal_hard_37.jsonl")

    assert len(tasks) == 37
    assert len(criteria_of(tasks)) == 721


@pytest.mark.parametrize("name", ["finance_hard.parquet", "legal_hard_37.jsonl"])
def test_the_labels_of_real_splits_are_known(name):
    for task in real(name):
        vocabulary = VOCABULARIES[task.field or ""]
        # A label of the data that the paper does not have.
        known_types = vocabulary["decision_type"] | {"Planning & Forecast"}
        for criterion in task.criteria:
            assert criterion.category in vocabulary["category"]
        assert set(task.decision_types) <= known_types
        assert set(task.economic_pathways) <= vocabulary["economic_pathway"]


# forms of rows

INVISIBLE = ("\u200b", "\ufeff\u200d", "\u00ad \u2060", "\u3164", "\u2800", "\ufe0f")


@pytest.mark.parametrize("text", INVISIBLE)
def test_a_text_that_shows_nothing_is_an_empty_title_an_empty_prompt_and_no_task_id(
    text,
):
    criterion = only_criterion(hub_criterion("c", "important", 5) | {"title": text})
    task = parse_row(hub_row("t", prompt_0=text))

    assert criterion.title == ""
    assert task.turn_pattern == "e"
    assert build_messages(task.conversation) == ()
    with pytest.raises(RowError, match="no task id"):
        parse_row(hub_row("t", task=text))


@pytest.mark.parametrize(
    "title", ["\u200bVisible.", "\u0301", " Says so.\ufe0f ", " \n"]
)
def test_any_other_title_stays_as_it_is(title):
    item = hub_criterion("c", "important", 5)

    assert only_criterion(item | {"title": title}).title == title


def in_text(rubric: list[dict[str, Any]], form: str) -> Any:
    """The rubric with JSON in a text, as exports of tables have it."""
    if form == "the rubric":
        return json.dumps(rubric)
    if form == "the rubric, twice":
        return json.dumps(json.dumps(rubric, ensure_ascii=False))
    if form == "each criterion":
        return [json.dumps(item, indent=1) for item in rubric]
    if form == "one criterion":
        return json.dumps(rubric[0])
    annotations = [json.dumps(item["annotations"]) for item in rubric]
    return [
        item | {"annotations": text}
        for item, text in zip(rubric, annotations, strict=True)
    ]


@pytest.mark.parametrize(
    "form",
    [
        "the rubric",
        "the rubric, twice",
        "each criterion",
        "one criterion",
        "the annotations",
    ],
)
def test_a_rubric_that_is_json_in_a_text_is_the_same_rubric(form):
    row = hub_row("t")
    rubric = row["rubric"][:1] if form == "one criterion" else row["rubric"]

    task = parse_row(row | {"rubric": in_text(rubric, form)})

    assert task == parse_row(row | {"rubric": rubric})


@pytest.mark.parametrize(
    "text",
    [
        "States the price.",
        "[{'title': 'of Python'}]",
        '[{"title": ',
        '"a text"',
        "5",
        "",
    ],
)
def test_a_rubric_of_another_text_is_a_criterion_without_a_title(text):
    [criterion] = parse_row(hub_row("t", rubric=text)).criteria

    assert criterion.title == ""


@pytest.mark.parametrize("text", ["null", "[]"])
def test_a_rubric_of_json_without_criteria_is_empty(text):
    assert parse_row(hub_row("t", rubric=text)).criteria == ()
