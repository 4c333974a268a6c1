"""The page of the data, against what is counted in the data set's own files."""

import json
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.benchmarks.prbench import SEVERITIES
from tasks.config.job import Job
from tasks.ingest import ingest
from tasks.report.content.edition import Edition, open_edition
from tasks.report.drawing.specification import specification
from tasks.report.pages.data import DATA as PAGE
from tasks.report.rendering.drawn import drawn
from tasks.report.rendering.html import render
from tasks.report.rendering.site import Site
from tests.builders import SHARED_DATA, admitted, at, criterion, job_on, row
from tests.tasks.aggregate.breakdowns_oracle import severity_rows
from tests.tasks.report.made_up.attacks import ATTACKS
from tests.tasks.report.made_up.editions import check_sources, edition_of, rows_of
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in PAGE.figures}
REAL = SHARED_DATA / "prbench" / "finance_hard.parquet"
HubRow = dict[str, Any]
QUARTILES = (0, 25, 50, 75, 100)


@pytest.fixture(scope="module")
def edition(world_job: Job) -> Iterator[Edition]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_edition(world_job, reader)


@pytest.fixture(scope="module")
def splits(world_job: Job) -> dict[str, list[HubRow]]:
    """The rows of each split as they stand in its file, before anybody has read them."""
    files = sorted(Path(world_job.settings.dataset.source).glob("*.jsonl"))
    return {path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in files}


def weight(item: HubRow) -> int:
    """A criterion's weight: the one that its class names."""
    found: int = item["annotations"][item["annotations"]["weight_class"].replace(" ", "_") + "_weight"]
    return found


def counted(splits: dict[str, list[HubRow]], labels: Any) -> dict[tuple[str, Any], tuple[int, Any]]:
    """(split, label) -> how many there are, and which share of the split that is."""
    found = {}
    for split, rows in splits.items():
        counts = Counter(label for each in rows for label in labels(each))
        found |= {(split, label): (n, pytest.approx(n / sum(counts.values()))) for label, n in counts.items()}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, edition: Edition, tmp_path: Path) -> None:
    check_sources(FIGURES[name], edition, tmp_path)


def test_the_size_and_shape_of_a_split_is_that_of_its_file(edition: Edition, splits: dict[str, list[HubRow]]) -> None:
    actual = {each["split"]: each for each in rows_of(FIGURES["splits"], edition)}

    assert list(actual) == ["finance", "legal", "finance_hard", "legal_hard"]
    for split, rows in splits.items():
        found, sizes, turns = actual[split], [len(each["rubric"]) for each in rows], [each["turns"] for each in rows]
        assert [found[f"criteria_{name}"] for name in ("min", "25", "50", "75", "max")] == [
            pytest.approx(np.percentile(sizes, quartile)) for quartile in QUARTILES
        ]
        assert [found[f"turns_{name}"] for name in ("min", "25", "50", "75", "max")] == [
            pytest.approx(np.percentile(turns, quartile)) for quartile in QUARTILES
        ]
        assert (found["n_tasks"], found["n_criteria"]) == (len(rows), sum(sizes))
        assert found["expert_share"] == pytest.approx(sum(each["expert"] == "Expert" for each in rows) / len(rows))
        assert found["multi_turn_share"] == pytest.approx(sum(n > 1 for n in turns) / len(rows))
        negative = [any(weight(item) < 0 for item in each["rubric"]) for each in rows]
        assert found["with_negative_share"] == pytest.approx(sum(negative) / len(rows))
        references = [any(each.get(f"reference_texts_{i}") for i in range(10)) for each in rows]
        assert found["n_with_references"] == sum(references)
    assert {split: each["n_refused"] for split, each in actual.items() if each["n_refused"]} == {"finance": 1}


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("task_topics", lambda each: [each["topic"]]),
        ("task_experts", lambda each: [each["expert"]]),
        ("task_turns", lambda each: [str(each["turns"])]),
        ("task_criteria", lambda each: [str(len(each["rubric"]))]),
    ],
)
def test_tasks_are_counted_under_their_label(
    name: str, labels: Any, edition: Edition, splits: dict[str, list[HubRow]]
) -> None:
    rows = rows_of(FIGURES[name], edition)

    actual = {(each["split"], each["label"]): (each["n_tasks"], each["share"]) for each in rows}
    assert actual == counted(splits, labels)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("weights", weight),
        ("criterion_severities", lambda item: item["annotations"]["weight_class"]),
        ("criterion_categories", lambda item: item["annotations"]["criteria_category"]),
    ],
)
def test_criteria_are_counted_by_what_they_are(
    name: str, label: Any, edition: Edition, splits: dict[str, list[HubRow]]
) -> None:
    column = "weight" if name == "weights" else "label"
    rows = rows_of(FIGURES[name], edition)

    actual = {(each["split"], each[column]): (each["n_criteria"], each["share"]) for each in rows}
    assert actual == counted(splits, lambda each: [label(item) for item in each["rubric"]])


def test_severities_stand_in_their_order(edition: Edition) -> None:
    rows = [each for each in rows_of(FIGURES["criterion_severities"], edition) if each["split"] == "finance"]

    assert list(SEVERITIES) == [each["label"] for each in rows]


# small cases


def labelled(**labels: Any) -> dict[str, list[HubRow]]:
    """Two tasks in a full and in a hard split, the first with these labels, the second without any."""
    tables = admitted(["t1", "t2"], decision_types=[], economic_pathways=[], n_criteria=0)
    tables["task_rows"][0] |= labels
    tables["split_members"] += [row("split_members", split="finance_hard", task_id="t1", position=0)]
    return tables


def test_a_task_with_several_labels_counts_under_each_and_one_without_any_is_told_apart(tmp_path: Path) -> None:
    edition = edition_of(tmp_path, labelled(decision_types=["Compliance", "Procedure, Forum & Jurisdiction"]))

    rows = rows_of(FIGURES["task_decision_types"], edition)

    assert [(each["split"], each["label"], each["n_tasks"], each["share"]) for each in rows] == [
        ("finance", "(none)", 1, 0.5), ("finance", "Compliance", 1, 0.5),
        ("finance", "Procedure, Forum & Jurisdiction", 1, 0.5),
        ("finance_hard", "Compliance", 1, 1.0), ("finance_hard", "Procedure, Forum & Jurisdiction", 1, 1.0),
    ]  # fmt: skip
    (plot,) = FIGURES["task_decision_types"].plots(rows)  # type: ignore[misc]
    assert "finance" == plot.title


def test_a_weight_that_is_no_number_is_counted_and_has_no_bar(tmp_path: Path) -> None:
    weights = [10.0, 10.0, None, -3.0]
    edition = edition_of(
        tmp_path, admitted(["t1"]) | {"criteria": [criterion("t1", i, each) for i, each in enumerate(weights)]}
    )

    rows = rows_of(FIGURES["weights"], edition)

    assert [(each["weight"], each["n_criteria"], each["share"]) for each in rows] == [
        (-3.0, 1, 0.25), (10.0, 2, 0.5), (None, 1, 0.25),
    ]  # fmt: skip
    (plot,) = FIGURES["weights"].plots(rows)  # type: ignore[misc]
    bars = specification(plot.chart)["data"]["values"]
    assert [(each["number"], each["share"]) for each in bars if each["share"]] == [(-3, 0.25), (10, 0.5)]
    assert [each["number"] for each in bars] == list(range(-3, 11)), "a weight that nothing has leaves a gap"


@pytest.mark.parametrize("odd", [0.5, 1e12])
def test_an_odd_number_gets_a_bar_of_its_own(odd: float, tmp_path: Path) -> None:
    edition = edition_of(tmp_path, admitted(["t1"]) | {"criteria": [criterion("t1", 0, 2.0), criterion("t1", 1, odd)]})

    (plot,) = FIGURES["weights"].plots(rows_of(FIGURES["weights"], edition))  # type: ignore[misc]

    shares = {each["number"]: each["share"] for each in specification(plot.chart)["data"]["values"]}
    assert {number for number, share in shares.items() if share} == {2, odd}


def test_a_split_of_another_revision_is_left_out(tmp_path: Path) -> None:
    tables = labelled(topic="Audit")
    tables["task_rows"] += [row("task_rows", task_id="t9", field="Finance", dataset_revision="another", n_criteria=9)]
    tables["split_members"] += [
        row("split_members", split="finance", task_id="t9", position=0, dataset_revision="another")
    ]
    edition = edition_of(tmp_path, tables | {"severities": severity_rows()})

    assert [(each["split"], each["n_tasks"]) for each in rows_of(FIGURES["splits"], edition)] == [
        ("finance", 2), ("finance_hard", 1),
    ]  # fmt: skip
    assert "9" not in {each["label"] for each in rows_of(FIGURES["task_criteria"], edition)}


# quality


def checked(run_id: str, suite: str, check_name: str, seconds: float, keys: list[str], **values: Any) -> HubRow:
    given = {"expectation": "odd: in(values=[True])", "table_name": "rubrics", "severity": "warn"} | values
    return row(
        "checks", run_id=run_id, suite=suite, check_name=check_name, success=not keys, n_evaluated=100,
        n_failed=len(keys), failing_keys=keys, created_at=at(seconds), **given,
    )  # fmt: skip


def test_the_last_run_of_each_suite_counts_and_what_fails_comes_first_the_gravest_before_the_rest(
    tmp_path: Path,
) -> None:
    keys = [f"t{i}" for i in range(7)]
    edition = edition_of(tmp_path, admitted(["t1"]) | {"checks": [
        checked("old", "ingest", "healed", 1, ["t1"]),
        checked("old", "judge", "verdict_value", 1, ["v1"], severity="fail"),
        checked("new", "ingest", "healed", 2, []), checked("new", "ingest", "many", 2, keys),
        checked("new", "ingest", "grave", 2, ["t1"], severity="quarantine"),
    ]})  # fmt: skip

    rows = rows_of(FIGURES["quality"], edition)

    columns = ("outcome", "check_name", "run_id", "n_failed", "some_keys", "n_more")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("failed", "verdict_value", "old", 1, ["v1"], None), ("failed", "grave", "new", 1, ["t1"], None),
        ("failed", "many", "new", 7, keys[:5], 2), ("passed", "healed", "new", 0, [], None),
    ]  # fmt: skip
    notes = FIGURES["quality"].notes(rows)  # type: ignore[misc]
    assert notes[0].startswith("3 of 4 checks failed")
    assert "ingest 2026-01-01 00:00 UTC" in notes[1]


def test_a_run_in_which_nothing_failed_shows_every_expectation(tmp_path: Path) -> None:
    names = ("criteria_per_task", "positive_criterion", "weight_range")
    edition = edition_of(
        tmp_path, admitted(["t1"]) | {"checks": [checked("run", "ingest", name, 1, []) for name in names]}
    )

    rows = rows_of(FIGURES["quality"], edition)

    shown = ("outcome", "policy", "check_name", "suite", "table_name", "n_evaluated", "n_failed", "some_keys")
    assert [tuple(each[name] for name in shown) for each in rows] == [
        ("passed", "warn", name, "ingest", "rubrics", 100, 0, []) for name in names
    ]
    assert FIGURES["quality"].notes(rows)[0] == "All 3 checks passed."  # type: ignore[misc]
    assert set(shown) <= {column.name for column in FIGURES["quality"].columns}


def test_an_expectation_is_told_in_the_words_of_its_rule(edition: Edition) -> None:
    words = {each["check_name"]: each["meaning"] for each in rows_of(FIGURES["quality"], edition)}

    assert words["weight_in_band"] == "a weight lies in the band of its class"
    assert words["response_not_empty"] == "no response is empty"
    assert len(rows_of(FIGURES["quality"], edition)) == len(edition.reader.rows(
        "from checks where dataset_revision = ?", [edition.revision]
    ))  # fmt: skip


class Elements(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {tag, *(name for name, _ in attrs if name.startswith("on"))}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_failing_keys_are_text_whatever_stands_in_them(tmp_path: Path) -> None:
    edition = edition_of(tmp_path / "warehouse", admitted(["t1"]) | {
        "checks": [checked("run", "ingest", attack, 50, [attack], expectation=attack) for attack in ATTACKS],
        "refusals": [
            row("refusals", run_id="run", task_id="t1", check_name=attack, severity="quarantine", detail=attack)
            for attack in ATTACKS
        ],
    })  # fmt: skip

    for name in ("quality", "refusals"):
        figure = drawn(FIGURES[name], edition, Site(tmp_path / "site"))
        page = Elements()
        page.feed(render(
            PAGE.template, page=PAGE, title="Data", figures=[figure],
            report={"heading": "h", "pages": [PAGE], "footer": "f", "charts_script": "c"},
        ))  # fmt: skip
        assert "<script>window.attacked='script'</script>" in page.text
        expected = {"html", "head", "meta", "title", "link", "script", "body", "a", "header", "div", "button", "nav"}
        expected |= {"ul", "li", "main", "h1", "p", "section", "h2", "details", "summary", "small", "pre", "code"}
        assert page.names <= expected | {"table", "thead", "tbody", "tr", "th", "td", "footer", "span"}


def test_a_refused_task_is_listed_with_its_reason_and_many_are_cut_in_the_table_alone(tmp_path: Path) -> None:
    ids = [f"t{i:03}" for i in range(300)]
    edition = edition_of(tmp_path, admitted(ids) | {"refusals": [
        row("refusals", task_id=each, check_name="weight_range", severity="quarantine", detail=f"{each} is odd")
        for each in ids
    ]})  # fmt: skip

    rows = rows_of(FIGURES["refusals"], edition)

    assert [(each["task_id"], each["splits"], each["detail"]) for each in rows] == [
        (each, "finance", f"{each} is odd") for each in ids
    ]
    assert rows[:200] == FIGURES["refusals"].listed(rows)  # type: ignore[misc]
    assert FIGURES["refusals"].notes(rows) == ["300 tasks refused: 300 by weight_range."]  # type: ignore[misc]
    assert [300] == [each["n_refused"] for each in rows_of(FIGURES["splits"], edition)]


# real data


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="needs the real split beside the checkout")
def test_the_real_hard_split_has_its_known_numbers(tmp_path: Path) -> None:
    job = job_on(REAL, tmp_path)
    ingest(job)
    with Warehouse(tmp_path).reader() as reader:
        edition = open_edition(job, reader)
        (split,) = rows_of(FIGURES["splits"], edition)
        weights = rows_of(FIGURES["weights"], edition)

    columns = ("n_tasks", "n_criteria", "criteria_min", "criteria_max", "turns_max", "n_with_references")
    assert tuple(split[name] for name in columns) == (300, 5085, 7, 30, 10, 10)
    assert split["multi_turn_share"] == pytest.approx(136 / 300)
    assert split["with_negative_share"] == pytest.approx(143 / 300)
    assert sum(each["n_criteria"] for each in weights if each["weight"] < 0) == 364
    assert {each["weight"] for each in weights} <= {*range(-10, 0), *range(1, 11)}
