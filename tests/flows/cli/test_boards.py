"""`prbench leaderboard`, `judges`, `criteria` and `lengths`: what people and machines see of one small world."""

from pathlib import Path

import pandas as pd
import pytest

from tasks.rules.text.numbers import number
from tests import kit
from tests.flows.conftest import Run, run_on
from tests.kit import admitted, combined, criterion, response, stored, verdict, written
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld, without_labels_on
from tests.tasks.aggregate.world import small_world
from tests.tasks.compare.comparisons import judged, tasks_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the small world in it, and a configuration that is about its data set."""
    return stored(tmp_path_factory.mktemp("boards"), small_world(seed=7))


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small world with the expert as a labeller, on the responses of two models."""
    tables = small_world(seed=7)
    by_expert = [each for each in tables["verdicts"] if each["judge"] == "expert"]
    for each in by_expert:
        each |= {"judge_config_hash": "imported", "template_hash": "imported"}
    gone = [each["verdict_id"] for each in by_expert if each["model"] in {"curie", "dirac"}]
    for each in tables["responses"]:
        each |= {"model_config_hash": "imported", "source": "imported"}
    tables["verdicts"] = [each for each in tables["verdicts"] if each["verdict_id"] not in gone]
    tables["labellers"] = [kit.row("labellers", judge="expert", import_batch="a-sheet")]
    tables |= {"split_members": [each | {"split": "finance"} for each in tables["split_members"]]}  # the file's
    return stored(tmp_path_factory.mktemp("labelled"), tables)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models below zero, one that lacks a trial, and one without verdicts."""
    tasks = [f"t{i:02d}" for i in range(60)]
    rows = dict(admitted(tasks, n_criteria=2))
    rows["criteria"] = [criterion(task, position, weight) for task in tasks for position, weight in enumerate((10, -5))]
    of_task = {task: [each for each in rows["criteria"] if each["task_id"] == task] for task in tasks}
    rows["responses"], rows["verdicts"] = [response("t00", "unheard")], []
    for i, task in enumerate(tasks):
        met = {"below": (i % 10 == 0, i % 3 > 0), "alike": (i % 10 == 1, i % 3 > 0), "good": (i % 2, 0)}
        for model, values in met.items():
            for trial in (1, 2) if model == "good" and i > 0 else (1,):
                of_model = response(task, model, trial)
                rows["responses"].append(of_model)
                pairs = zip(of_task[task], values, strict=True)
                rows["verdicts"] += [verdict(of_model, criterion_row, float(value)) for criterion_row, value in pairs]
    return stored(tmp_path_factory.mktemp("uneven"), rows)


def test_what_clipping_hides_who_has_no_verdict_and_which_ranks_are_possible_is_shown(
    uneven: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_here = run_on(uneven, capsys)
    rows = {row["model"]: row for row in run_here.json("leaderboard")}
    shown = run_here("leaderboard")
    line = {model: next(line for line in shown.splitlines() if f" {model} " in line and "│" in line) for model in rows}
    below = rows["below"]

    assert (0, 0, 0) == (below["mean_score"], below["ci_low"], below["ci_high"])
    mean, low, high = (number(below[f"raw_{name}"]) for name in ("mean_score", "ci_low", "ci_high"))
    assert f" {mean} ({low} to {high}) │" in line["below"]
    assert "A mean below 0 is shown as 0; ranks and `prbench diff` compare the unclipped means." in shown
    assert [(1, 1, 1), (2, 2, 3), (2, 2, 3), (None, None, None)] == [
        tuple(rows[model][name] for name in ("rank", "rank_low", "rank_high"))
        for model in ("good", "below", "alike", "unheard")
    ]
    assert " 2 to 3 │" in line["below"]
    assert " 60 │                     59 │        60 │" in line["good"]
    assert "Not judged on a split by this judge: unheard" in shown
    assert "based on only part of the split" not in shown


def test_models_without_a_rank_or_below_a_lower_score_are_listed_with_the_tasks_that_ranks_compare(
    tmp_path: Path, run: Run
) -> None:
    tasks = {f"t{n}": [(10, "Accuracy"), (10, "Risk")] for n in range(10)}
    half, whole = [1, 0.0], [1, 1.0]
    rows = combined(
        tasks_of(tasks),
        judged({task: half if n < 8 else whole for n, task in enumerate(tasks)}, "full", rubrics=tasks),
        judged({task: half if n else whole for n, task in enumerate(tasks) if n < 8}, "late", rubrics=tasks),
        judged({task: whole for n, task in enumerate(tasks) if n < 4}, "begun", rubrics=tasks),
    )
    written(tmp_path, rows).publish()

    shown = " ".join(run("leaderboard", "--warehouse", str(tmp_path)).split())
    assert (
        "Ranks compare only the tasks with a complete trial for every ranked model (finance 8), so a higher score can "
        "stand below: full on finance."
    ) in shown
    assert "No rank: begun on finance (4 tasks). Ranked is who has a score on at least half as many tasks" in shown


@pytest.mark.parametrize("arguments", [
    ["leaderboard"], ["leaderboard", "--hard"], ["leaderboard", "--by", "topic"], ["leaderboard", "--risk"],
    ["leaderboard", "--selection", "latest"], ["lengths"], ["criteria", "never-met", "-n", "500"], ["status"],
], ids=" ".join)  # fmt: skip
def test_people_who_label_are_a_judge_only_where_they_are_named(
    labelled: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    run_here = run_on(labelled, capsys)
    judges, named = ({row["judge"] for row in run_here.json(*arguments, *more)} for more in ([], ["--judge", "expert"]))

    assert "expert" not in judges
    assert "expert" in named


def test_a_figure_is_what_the_command_shows_in_any_format(run_here: Run, run: Run, tmp_path: Path) -> None:
    names = [each["figure"] for each in run.json("figures")]
    assert {"leaderboard", "judge_agreement", "critical", "criteria"} <= set(names)
    by_category = ["leaderboard", "--by", "category"]
    assert run_here.json("figure", *by_category) == run_here.json(*by_category)
    # Without a breakdown the figure has the own hard selections too, as in the report.
    board = run_here.json("figure", "leaderboard")
    assert [row for row in board if not row["is_own_hard"]] == run_here.json("leaderboard")
    rows = run_here.json("figure", "judge_leniency")
    for name, read in (("leniency.csv", pd.read_csv), ("leniency.xlsx", pd.read_excel), ("l.parquet", pd.read_parquet)):
        run_here("figure", "judge_leniency", "-o", str(tmp_path / name))
        assert pytest.approx([row["leniency"] for row in rows]) == list(read(tmp_path / name)["leniency"])
    assert f"| {rows[0]['grader']} | " in run_here("figure", "judge_leniency", "--format", "markdown")


@pytest.mark.slow
def test_a_model_and_a_category_without_labels_are_said_to_have_none_and_the_advice_names_the_category(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = without_labels_on(LabelledWorld(seed=5).tables(), {"bob"}, {0, 2, 4})
    run_here = run_on(stored(tmp_path, tables), capsys)

    stdout = run_here("leaderboard", "--debiased", "--model", "bob")
    assert all(part in stdout for part in ("bob", "no label", "--for leaderboard"))
    assert f'--for "{CATEGORIES[0]}"' in run_here("leaderboard", "--debiased", "--by", "category", "--model", "ada")
