"""The page of lengths and costs, against figures that are derived in Python from the stored answers."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tasks.config.job import Job
from tasks.report.content.edition import Edition, open_edition
from tasks.report.drawing.plots import specification
from tasks.report.pages.lengths import LENGTHS as PAGE
from tests.builders import admitted, at, criterion, response, row, verdict
from tests.tasks.report.made_up.contenders import CONTENDERS, IMPORTED_MODEL, JUDGES, PEOPLE
from tests.tasks.report.made_up.editions import check_sources, edition_of, rows_of
from tests.tasks.report.made_up.evaluated import Evaluated, Row
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in PAGE.figures}
UNPRICED = {IMPORTED_MODEL, *(each.label for each in CONTENDERS if each.usd_per_mtok is None)}


@pytest.fixture(scope="module")
def edition(world_job: Job) -> Iterator[Edition]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_edition(world_job, reader)


@pytest.fixture(scope="module")
def evaluated(edition: Edition) -> Evaluated:
    return Evaluated(edition)


def boards(evaluated: Evaluated) -> Iterator[tuple[str, str, str, list[Row], list[Row]]]:
    """Every judging, split and model of which a judge has seen anything, with the tasks and the answers that count."""
    for judging in evaluated.judgings:
        for entry in evaluated.entries:
            judged = evaluated.judged(judging, entry)
            for (split,) in evaluated.splits:
                tasks = evaluated.tasks_of(split)
                answers = [each for task in tasks for each in judged[task["task_id"]]]
                if any(evaluated.verdicts(judging, each) for each in answers):
                    yield judging, split, entry, tasks, answers


def keyed(rows: list[Row], *columns: str) -> dict[tuple[Any, ...], Row]:
    found = {tuple(each[name] for name in columns): each for each in rows}
    assert len(found) == len(rows), "no figure stands there twice"
    return found


def mean(values: list[Any]) -> Any:
    """The mean of what is known, to be compared with; None of nothing."""
    known = [value for value in values if value is not None]
    return pytest.approx(fmean(known)) if known else None


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, edition: Edition, tmp_path: Path) -> None:
    check_sources(FIGURES[name], edition, tmp_path)


# length


def test_a_models_length_stands_beside_its_score(edition: Edition, evaluated: Evaluated) -> None:
    actual = keyed(rows_of(FIGURES["length_score"], edition), "judging", "split", "model")

    wanted = {}
    for judging, split, entry, tasks, answers in boards(evaluated):
        usable = [each for each in answers if each["status"] == "ok"]
        means = evaluated.task_means(judging, entry, tasks)
        wanted[judging, split, entry] = (
            mean([each["chars_alnum"] for each in usable]), mean([each["completion_tokens"] for each in usable]),
            pytest.approx(max(0.0, fmean(means.values()))), len(means),
        )  # fmt: skip
    columns = ("mean_chars_alnum", "mean_completion_tokens", "mean_score", "n_tasks")
    assert {key: tuple(each[name] for name in columns) for key, each in actual.items()} == wanted


def lengths_and_scores(evaluated: Evaluated, judging: str, entry: str, tasks: list[Row]) -> list[tuple[float, float]]:
    """The mean length of the answers that are decided, and the score, of each task that counts."""
    judged = evaluated.judged(judging, entry)
    return [
        (fmean(each["chars_alnum"] for each in judged[task] if evaluated.value(judging, each) is not None), score)
        for task, score in evaluated.task_means(judging, entry, tasks).items()
    ]


def test_length_and_score_of_a_models_tasks_go_together_as_their_ranks_do(
    edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES["length_tasks"], edition), "judging", "split", "model")

    wanted = {}
    for judging, split, entry, tasks, _ in boards(evaluated):
        pairs = lengths_and_scores(evaluated, judging, entry, tasks)
        known = len(pairs) > 1 and all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
        correlation = stats.spearmanr(*zip(*pairs, strict=True)).statistic if known else None
        wanted[judging, split, entry] = (None if correlation is None else pytest.approx(correlation), len(pairs))
    assert {key: (each["chars_correlation"], each["n_chars"]) for key, each in actual.items()} == wanted


def test_over_models_only_those_of_one_sampling_are_compared_and_never_two_alone(
    edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES["length_models"], edition), "judging", "split", "vintage")

    means: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for judging, split, entry, tasks, _ in boards(evaluated):
        pairs = lengths_and_scores(evaluated, judging, entry, tasks)
        vintage = evaluated.entries[entry][2]
        means[judging, split, vintage].append(tuple(map(fmean, zip(*pairs, strict=True))))  # type: ignore[arg-type]
    assert {len(each) for each in means.values()} >= {2, 5}, "the world has samplings of two models and of five"
    assert {key: (each["chars_correlation"], each["n_chars"]) for key, each in actual.items()} == {
        key: (pytest.approx(stats.spearmanr(*zip(*of, strict=True)).statistic), len(of))
        for key, of in means.items()
        if len(of) > 2
    }


def test_a_models_answers_are_divided_by_length_into_five_equal_parts(edition: Edition, evaluated: Evaluated) -> None:
    rows = rows_of(FIGURES["length_fifths"], edition)

    wanted = {}
    for judging, split, entry, _, answers in boards(evaluated):
        valued = [
            (each["chars_alnum"], each["response_id"], value)
            for each in answers
            if (value := evaluated.value(judging, each)) is not None
        ]
        whole = fmean(value for _, _, value in valued)
        for place, part in enumerate(np.array_split(np.arange(len(valued)), 5), start=1):
            of_part = [sorted(valued)[i] for i in part]
            if of_part:
                own = fmean(value for _, _, value in of_part)
                wanted[judging, split, entry, place] = (
                    len(of_part), of_part[0][0], of_part[-1][0], pytest.approx(own),
                    pytest.approx(own - whole, abs=1e-9),
                )  # fmt: skip
    columns = ("n_answers", "min_chars_alnum", "max_chars_alnum", "mean_value", "difference")
    actual = keyed(rows, "judging", "split", "model", "fifth")
    assert {key: tuple(each[name] for name in columns) for key, each in actual.items()} == wanted
    assert all(each["is_small"] == (each["n_tasks"] < 50) for each in rows)


# cost


def test_an_answer_costs_what_its_calls_cost_and_an_unknown_price_is_no_price(
    edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES["costs"], edition), "judging", "split", "model")

    wanted = {}
    for judging, split, entry, _, answers in boards(evaluated):
        judging_costs = []
        for each in answers:
            costs = [given["cost_usd"] for given in evaluated.verdicts(judging, each).values()]
            judging_costs.append(sum(costs) if costs and None not in costs else None)
        answer_costs = [each["cost_usd"] for each in answers]
        wanted[judging, split, entry] = (
            mean(answer_costs), mean(judging_costs), len(answers), answer_costs.count(None),
            pytest.approx(sum(answer_costs)) if None not in answer_costs else None,
        )  # fmt: skip
    columns = ("answer_usd", "judging_usd", "n_answers", "n_unpriced_answers", "all_answers_usd")
    assert {key: tuple(each[name] for name in columns) for key, each in actual.items()} == wanted
    assert {key[2] for key, each in actual.items() if each["answer_usd"] is None} == UNPRICED
    for (judging, _, _), each in actual.items():
        assert (each["judging_usd"] is None) == (judging == PEOPLE)
        assert (each["task_usd"] is None) == (None in (each["answer_usd"], each["judging_usd"]))


def test_who_has_no_known_price_is_named_and_is_in_no_chart_of_cost(edition: Edition) -> None:
    rows = rows_of(FIGURES["costs"], edition)

    (note,) = FIGURES["costs"].notes(rows)  # type: ignore[misc]
    assert all(model in note for model in UNPRICED)
    drawn = [
        each
        for plot in FIGURES["costs"].plots(rows)  # type: ignore[misc]
        for each in specification(plot.chart)["data"]["values"]
    ]
    assert {each["model"] for each in drawn} == {each["model"] for each in rows} - UNPRICED
    assert all(each["answer_usd"] > 0 for each in drawn)
    bars = [each for each in drawn if "part" in each]
    assert bars
    assert PEOPLE not in {each["judging"] for each in bars}, "what people cost is not known"


def test_an_answer_takes_the_tokens_and_the_time_that_were_reported(edition: Edition, evaluated: Evaluated) -> None:
    actual = keyed(rows_of(FIGURES["answer_tokens"], edition), "split", "model")

    wanted = {}
    for entry, key in evaluated.entries.items():
        for (split,) in evaluated.splits:
            tasks = {each["task_id"] for each in evaluated.tasks_of(split)}
            answers = [each for each in evaluated.answers[key] if each["task_id"] in tasks]
            prompts = [each["prompt_tokens"] for each in answers if each["cached_tokens"] is not None]
            cached = [each["cached_tokens"] for each in answers if each["cached_tokens"] is not None]
            reported = ("prompt_tokens", "completion_tokens", "latency_s")
            wanted[split, entry] = (
                *(mean([each[name] for each in answers]) for name in reported),
                pytest.approx(sum(cached) / sum(prompts)) if prompts else None,
                mean([each["chars_alnum"] for each in answers if each["status"] == "ok"]),
                len(answers), sum(each["status"] != "ok" for each in answers),
            )  # fmt: skip
    columns = (
        "prompt_tokens", "completion_tokens", "latency_s", "cached_share", "mean_chars_alnum", "n_answers", "n_failed",
    )  # fmt: skip
    assert {key: tuple(each[name] for name in columns) for key, each in actual.items()} == wanted
    assert all(actual[split, IMPORTED_MODEL]["completion_tokens"] is None for split in ("finance", "legal"))


def test_a_judge_costs_what_its_verdicts_cost_on_the_answers_that_are_shown(
    edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES["judge_costs"], edition), "judged_by")

    wanted = {}
    for judging in evaluated.judgings:
        made = [
            given
            for key in evaluated.entries.values()
            for answer in evaluated.answers[key]
            for given in evaluated.verdicts(judging, answer).values()
            if given["source"] == "judged"
        ]
        if made:
            prompts = sum(each["prompt_tokens"] for each in made if each["cached_tokens"] is not None)
            wanted[judging,] = (
                len(made), sum(each["value"] is None for each in made), len({each["response_id"] for each in made}),
                pytest.approx(sum(each["cached_tokens"] or 0 for each in made) / prompts),
                mean([each["prompt_tokens"] for each in made]),
                pytest.approx(1000 * fmean(each["cost_usd"] for each in made)),
                pytest.approx(sum(each["cost_usd"] for each in made)),
            )  # fmt: skip
    columns = ("n_verdicts", "n_failed", "n_answers", "cached_share", "prompt_tokens", "thousand_usd", "cost_usd")
    assert {key: tuple(each[name] for name in columns) for key, each in actual.items()} == wanted
    assert (PEOPLE,) not in actual
    assert (JUDGES[0],) in actual


def test_what_all_calls_came_to_is_added_up_by_purpose_and_model(edition: Edition) -> None:
    rows = keyed(rows_of(FIGURES["spend"], edition), "purpose", "called_model")

    stored = sorted(edition.reader.rows("from spend"), key=spent_for)
    wanted = {}
    for key, group in groupby(stored, spent_for):
        of = list(group)
        calls, unpriced = sum(each["calls"] for each in of), sum(each["unpriced_calls"] for each in of)
        cost = sum(each["cost_usd"] for each in of)
        wanted[key] = (
            calls, unpriced, sum(each["prompt_tokens"] for each in of),
            pytest.approx(cost) if cost or not unpriced else None, min(each["day"] for each in of),
        )  # fmt: skip
    columns = ("calls", "unpriced_calls", "prompt_tokens", "cost_usd", "first_day")
    assert {key: tuple(each[name] for name in columns) for key, each in rows.items()} == wanted
    assert any(each["cost_usd"] is None for each in rows.values()), "the world has a model without a price"


def spent_for(each: Row) -> tuple[str, str]:
    return each["purpose"], each["called_model"]


# small cases


def one_answer_each(costs: dict[str, list[float | None]], **of_verdict: Any) -> dict[str, list[Row]]:
    """Models that answered tasks at these costs, all of it judged as met."""
    tasks = [f"t{i}" for i in range(max(map(len, costs.values())))]
    criteria = {task: criterion(task, 0, 5.0) for task in tasks}
    answers = [
        response(task, model, cost_usd=cost, chars_alnum=10)
        for model, of_model in costs.items()
        for task, cost in zip(tasks, of_model, strict=False)
    ]
    given = {"cost_usd": 0.01, **of_verdict}
    return {
        **admitted(tasks, n_criteria=1), "criteria": list(criteria.values()), "responses": answers,
        "verdicts": [verdict(answer, criteria[answer["task_id"]], 1.0, **given) for answer in answers],
    }  # fmt: skip


def test_a_cost_that_is_partly_unknown_is_the_mean_of_what_is_known_and_no_sum(tmp_path: Path) -> None:
    edition = edition_of(tmp_path, one_answer_each({"dear": [2.0, None], "free": [0.0, 0.0], "odd": [None, None]}))

    rows = {each["model"]: each for each in rows_of(FIGURES["costs"], edition)}
    notes = FIGURES["costs"].notes(list(rows.values()))  # type: ignore[misc]

    columns = ("answer_usd", "n_unpriced_answers", "all_answers_usd", "task_usd")
    assert {model: tuple(each[name] for name in columns) for model, each in rows.items()} == {
        "dear": (2.0, 1, None, pytest.approx(2.01)), "free": (0.0, 0, 0.0, pytest.approx(0.01)),
        "odd": (None, 2, None, None),
    }  # fmt: skip
    assert [note.endswith(f"{name}.") for note, name in zip(notes, ("odd", "free"), strict=False)] == [True, True]
    assert notes[2].startswith("The cost of dear ")
    plots = FIGURES["costs"].plots(list(rows.values()))  # type: ignore[misc]
    assert ["dear"] == [each["model"] for each in specification(plots[0].chart)["data"]["values"]]


def test_a_verdict_without_a_price_makes_no_judging_cheaper(tmp_path: Path) -> None:
    edition = edition_of(tmp_path, one_answer_each({"one": [1.0, 1.0]}, cost_usd=None, source="judged"))

    (cost,) = rows_of(FIGURES["costs"], edition)
    (judge,) = rows_of(FIGURES["judge_costs"], edition)

    assert (cost["answer_usd"], cost["judging_usd"], cost["task_usd"]) == (1.0, None, None)
    assert (judge["thousand_usd"], judge["cost_usd"], judge["n_unpriced"]) == (None, None, 2)
    assert judge["cached_share"] is None
    assert FIGURES["judge_costs"].plots([judge]) == []  # type: ignore[misc]


def test_an_earlier_sampling_and_another_judge_leave_the_fifths_as_they_are(tmp_path: Path) -> None:
    tables = one_answer_each({"one": [1.0] * 6})
    for answer, chars in zip(tables["responses"], (60, 10, 50, 20, 40, 30), strict=True):
        answer["chars_alnum"] = chars
    lost = tables["verdicts"][1]
    lost |= {"value": None, "status": "parse_error"}
    earlier = [each | {"response_id": f"{each['response_id']}/0", "vintage": "old"} for each in tables["responses"]]
    later = [each | {"created_at": at(1000)} for each in tables["responses"]]
    old = [verdict(each, criterion(each["task_id"], 0, 5.0), 0.0) for each in earlier]
    bell = [verdict(each, criterion(each["task_id"], 0, 5.0), 0.0, judge="bell") for each in later]
    edition = edition_of(tmp_path, tables | {"responses": earlier + later, "verdicts": tables["verdicts"] + old + bell})

    rows = [each for each in rows_of(FIGURES["length_fifths"], edition) if each["judging"] == "a-judge"]

    # The shortest answer is not decided in full, so five are left.
    assert [(each["fifth"], each["min_chars_alnum"], each["n_answers"], each["mean_value"]) for each in rows] == [
        (place, chars, 1, 1.0) for place, chars in enumerate((20, 30, 40, 50, 60), start=1)
    ]
    assert {each["difference"] for each in rows} == {0.0}


def test_calls_without_any_price_have_no_cost(tmp_path: Path) -> None:
    def spent(day: str, called_model: str, unpriced: int, cost_usd: float, cached: int | None = None) -> Row:
        return row(
            "spend", purpose="judge", day=day, called_model=called_model, calls=10, failed_calls=0, prompt_tokens=100,
            completion_tokens=10, unpriced_calls=unpriced, cost_usd=cost_usd, cached_tokens=cached,
        )  # fmt: skip

    edition = edition_of(tmp_path, {
        **admitted(["t1"]),
        "spend": [
            spent("2026-01-02", "known", 4, 0.5, cached=25), spent("2026-01-01", "known", 0, 0.25),
            spent("2026-01-01", "unknown", 10, 0.0),
        ],
    })  # fmt: skip

    rows = rows_of(FIGURES["spend"], edition)

    columns = ("called_model", "cost_usd", "unpriced_calls", "cached_share", "first_day", "last_day")
    assert [tuple(each[name] for name in columns) for each in rows] == [
        ("known", 0.75, 4, 0.25, "2026-01-01", "2026-01-02"), ("unknown", None, 10, None, "2026-01-01", "2026-01-01"),
    ]  # fmt: skip
    (note,) = FIGURES["spend"].notes(rows)  # type: ignore[misc]
    assert note.endswith("known, unknown.")
