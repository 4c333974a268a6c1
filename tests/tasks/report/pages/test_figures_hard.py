"""The hard subset's page, against selections that are written out and scores that are worked out by hand."""

import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.report.content.edition import Edition, open_edition
from tasks.report.pages.hard import HARD as PAGE
from tests.builders import admitted, at, row
from tests.tasks.report.made_up.contenders import JUDGES
from tests.tasks.report.made_up.editions import check_sources, edition_of, rows_of
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in PAGE.figures}
Rows = list[dict[str, Any]]
MEANS = {"t0": 0.1, "t1": 0.25, "t2": 0.5, "t3": 0.75 + 1e-15, "t4": 0.75, "t5": 1.0}
"""Task -> mean score; the two before the last one differ in their last digits only."""
CHANCES = {"t0": 1.0, "t1": 0.96, "t2": 0.5, "t3": 0.4, "t4": 0.04, "t5": 0.0}
HARDEST, EARLIER = ("t0", "t1", "t2"), ("t0", "t2", "t5")
TOPICS = {"t0": "Torts", "t1": "Tax", "t2": "Tax", "t3": "Tax", "t4": "Torts", "t5": None}


def selected(selection: str, tasks: tuple[str, ...], at_s: float, field: str = "Finance") -> Rows:
    return [
        row(
            "hard_subset", selection_id=selection, field=field, task_id=task, rank=rank, n_models=2,
            mean_score=MEANS.get(task, 0.5), panel=["ada", "bell"], selected_at=at(at_s),
        )
        for rank, task in enumerate(tasks, start=1)
    ]  # fmt: skip


def stable(selection: str) -> Rows:
    return [
        row(
            "hard_stability", selection_id=selection, field="Finance", task_id=task, mean_score=mean,
            is_selected=task in HARDEST, inclusion_probability=CHANCES[task],
            is_border=0.05 <= CHANCES[task] <= 0.95,
        )
        for task, mean in MEANS.items()
    ]  # fmt: skip


def tables() -> dict[str, Rows]:
    found = admitted([*MEANS, "l0", "refused"])
    for each in found["task_rows"]:
        each |= {"field": "Legal" if each["task_id"] == "l0" else "Finance", "topic": TOPICS.get(each["task_id"])}
    official = [row("split_members", split="finance_hard", task_id=task, position=0) for task in ("t0", "t5")]
    found["refusals"] = [row("refusals", task_id="refused", check_name="any", severity="quarantine")]
    return found | {
        "split_members": found["split_members"] + official,
        # The one of Legal was selected before stability was measured.
        "hard_subset": [
            *selected("own", HARDEST, 200), *selected("earlier", EARLIER, 100),
            *selected("legal", ("l0",), 50, "Legal"),
        ],
        "hard_stability": [*stable("own"), *stable("earlier")],
        "hard_overlaps": [
            row(
                "hard_overlaps", selection_id=selection, field="Finance", kind=kind, compared_with=compared_with,
                n_selected=3, n_compared=n_compared, n_shared=1, jaccard=0.25,
            )
            for selection, kind, compared_with, n_compared in (
                ("own", "leave_one_out", "ada", 3), ("own", "official", "finance_hard", 2),
                ("earlier", "leave_one_out", "bell", 3),
            )
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edition]:
    edition = edition_of(tmp_path_factory.mktemp("small"), tables())
    yield edition
    edition.reader.close()


def test_a_selection_is_told_with_its_size_its_border_and_its_panel(small: Edition) -> None:
    finance, legal = rows_of(FIGURES["hard_selections"], small)

    names = ("selection_id", "n_selected", "n_chosen_from", "n_tasks", "n_border", "n_border_inside", "n_models")
    assert [finance[name] for name in names] == ["own", 3, 6, 6, 2, 1, 2]
    assert (finance["highest_inside"], finance["lowest_outside"], finance["gap"]) == (0.5, 0.75, 0.25)
    assert finance["mean_inclusion"] == pytest.approx((1.0 + 0.96 + 0.5) / 3)
    assert finance["panel"] == ["ada", "bell"]
    assert finance["selected_at"] == at(200).replace(tzinfo=None)
    assert [legal[name] for name in names] == ["legal", 1, None, 1, None, None, 2]
    assert (legal["gap"], legal["mean_inclusion"]) == (None, None)


def test_every_task_has_its_rank_and_its_distance_from_the_border(small: Edition) -> None:
    rows = [each for each in rows_of(FIGURES["hard_tasks"], small) if each["field"] == "Finance"]

    # t3 comes before t4, since what differs in its last digits only is a tie, and a tie goes by the id.
    assert [(each["rank"], each["task_id"]) for each in rows] == [(i + 1, task) for i, task in enumerate(MEANS)]
    assert [each["is_selected"] for each in rows] == [True] * 3 + [False] * 3
    assert [each["inclusion_probability"] for each in rows] == list(CHANCES.values())
    assert [each["from_border"] for each in rows] == [pytest.approx(mean - 0.625) for mean in MEANS.values()]
    assert [each["is_official"] for each in rows] == [True, False, False, False, False, True]
    assert [each["topic"] for each in rows] == list(TOPICS.values())


def test_what_is_not_known_of_a_selection_stays_missing(small: Edition) -> None:
    (member,) = (each for each in rows_of(FIGURES["hard_tasks"], small) if each["field"] == "Legal")

    assert (member["task_id"], member["rank"], member["is_selected"]) == ("l0", 1, True)
    unknown = ("from_border", "inclusion_probability", "is_border", "is_official")
    assert [member[name] for name in unknown] == [None] * 4


def test_the_table_lists_members_and_those_outside_that_chance_decided_on(small: Edition) -> None:
    rows = rows_of(FIGURES["hard_tasks"], small)

    listed = FIGURES["hard_tasks"].listed(rows)  # type: ignore[misc]
    assert [each["task_id"] for each in listed] == ["t0", "t1", "t2", "t3", "l0"]


def test_around_the_border_are_the_last_inside_and_the_first_outside() -> None:
    rows: Rows = [{"field": field, "is_selected": i < 20, "rank": i} for field in ("A", "B") for i in range(40)]

    found = FIGURES["hard_border"].listed(rows)  # type: ignore[misc]

    assert [(each["field"], each["rank"]) for each in found] == [(f, i) for f in ("A", "B") for i in range(12, 28)]


def test_a_field_without_a_known_border_has_no_chart_of_it(small: Edition) -> None:
    rows = rows_of(FIGURES["hard_tasks"], small)

    assert ["Finance"] == [plot.title for plot in FIGURES["hard_border"].plots(rows)]  # type: ignore[misc]
    assert ["Finance"] == [plot.title for plot in FIGURES["hard_tasks"].plots(rows)]  # type: ignore[misc]


def test_of_each_topic_the_selected_share_is_told(small: Edition) -> None:
    rows = rows_of(FIGURES["hard_topics"], small)

    columns = ("topic", "n_selected", "n_chosen_from", "selected_share")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("Tax", 2, 3, pytest.approx(2 / 3)), ("Torts", 1, 2, 0.5), ("(none)", 0, 1, 0.0),
    ]  # fmt: skip
    assert rows[0]["mean_score"] == pytest.approx((0.25 + 0.5 + 0.75) / 3)


def test_a_selection_is_held_against_the_official_the_earlier_and_those_without_a_model(small: Edition) -> None:
    rows = rows_of(FIGURES["hard_overlaps"], small)

    columns = ("kind", "compared_with", "n_selected", "n_compared", "n_shared", "shared_share", "jaccard")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("official", "finance_hard", 3, 2, 1, pytest.approx(1 / 3), 0.25),
        ("earlier", "2026-01-01 00:01 (2 models)", 3, 3, 2, pytest.approx(2 / 3), 0.5),
        ("leave_one_out", "ada", 3, 3, 1, pytest.approx(1 / 3), 0.2),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def edition(world_job: Job) -> Iterator[Edition]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_edition(world_job, reader)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, edition: Edition, tmp_path: Path) -> None:
    check_sources(FIGURES[name], edition, tmp_path)


def test_a_model_is_ranked_by_its_own_answers_to_the_selected_tasks_under_one_judge(edition: Edition) -> None:
    rows = [each for each in rows_of(FIGURES["hard_leaderboard"], edition) if each["judging"] == JUDGES[0]]

    hard = {(each["field"], each["task_id"]) for each in edition.reader.rows("from hard_subset")}
    scores: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    entries = {each["model"]: each["vintage"] for each in edition.entries}
    for each in edition.reader.rows(
        "select scores.*, field from scores join tasks using (dataset_revision, task_id) where score_name = 'score' "
        f"and judge = '{JUDGES[0]}' and judge_trial = 1 and is_complete"
    ):
        if (each["field"], each["task_id"]) in hard and entries[each["model"]] == each["vintage"]:
            scores[f"{each['field']} (own hard)", each["model"]][each["task_id"]].append(each["value"])
    means = {
        key: max(0.0, math.fsum(sum(of) / len(of) for of in tasks.values()) / len(tasks))
        for key, tasks in scores.items()
    }
    assert {(each["split"], each["model"]): each["mean_score"] for each in rows} == pytest.approx(means)
    for split in {split for split, _ in means}:
        order = sorted((model for of, model in means if of == split), key=lambda model: -means[split, model])
        assert [each["model"] for each in rows if each["split"] == split] == order


def test_a_chart_of_the_board_has_one_judge(edition: Edition) -> None:
    rows = rows_of(FIGURES["hard_leaderboard"], edition)

    plots = FIGURES["hard_leaderboard"].plots(rows)  # type: ignore[misc]

    assert len(plots) == len({(each["split"], each["judging"]) for each in rows}) == 2 * 3
    assert len({plot.title for plot in plots}) == len(plots)
