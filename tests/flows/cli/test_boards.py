"""`prbench leaderboard`, `judges`, `criteria` and `lengths`: what people and machines see of one small world."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from tasks.aggregate import aggregate
from tests import builders
from tests.builders import admitted, criterion, job_on, response, verdict
from tests.tasks.aggregate.test_cookbook import small_world
from tests.tasks.compare.comparisons import judged, tasks_of, together
from warehouse import Warehouse

BREAKDOWNS = (
    "category", "topic", "expert", "turns", "decision_type", "economic_pathway", "severity", "reference_texts",
    "subset",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the small world in it, and a configuration that is about its data set."""
    return stored(tmp_path_factory.mktemp("boards"), small_world(seed=7))


def stored(folder: Path, tables: dict[str, list[dict[str, Any]]]) -> Path:
    """A folder with the rows in a warehouse, and a configuration that is about their data set."""
    (folder / "finance.jsonl").write_text("{}\n", encoding="utf-8")
    (folder / "prbench.yaml").write_text(yaml.safe_dump({"dataset": {"source": str(folder / "finance.jsonl")}}))
    job = job_on(folder / "finance.jsonl", folder / "data")
    revision = job.data.revision
    for table_name, rows in tables.items():
        known = [row | ({"dataset_revision": revision} if "dataset_revision" in row else {}) for row in rows]
        Warehouse(job.warehouse).write(table_name, known)
    aggregate(job)
    return folder


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small world with the expert as somebody who labels, on the answers of two models."""
    tables = small_world(seed=7)
    by_expert = [each for each in tables["verdicts"] if each["judge"] == "expert"]
    for each in by_expert:
        each |= {"judge_config_hash": "imported", "template_hash": "imported"}
    gone = [each["verdict_id"] for each in by_expert if each["model"] in {"curie", "dirac"}]
    for each in tables["responses"]:
        each |= {"model_config_hash": "imported", "source": "imported"}
    tables["verdicts"] = [each for each in tables["verdicts"] if each["verdict_id"] not in gone]
    tables["labellers"] = [builders.row("labellers", judge="expert", import_batch="a-sheet")]
    return stored(tmp_path_factory.mktemp("labelled"), tables)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One model below zero, one that lacks a trial, one that nobody judged; and one more of the first's kind."""
    tasks = [f"t{i:02d}" for i in range(60)]
    rows = dict(admitted(tasks, n_criteria=2))
    rows["criteria"] = [criterion(task, place, weight) for task in tasks for place, weight in enumerate((10, -5))]
    of_task = {task: [each for each in rows["criteria"] if each["task_id"] == task] for task in tasks}
    rows["responses"], rows["verdicts"] = [response("t00", "unheard")], []
    for i, task in enumerate(tasks):
        met = {"below": (i % 10 == 0, i % 3 > 0), "alike": (i % 10 == 1, i % 3 > 0), "good": (i % 2, 0)}
        for model, values in met.items():
            for trial in (1, 2) if model == "good" and i > 0 else (1,):
                answer = response(task, model, trial)
                rows["responses"].append(answer)
                pairs = zip(of_task[task], values, strict=True)
                rows["verdicts"] += [verdict(answer, asked, float(value)) for asked, value in pairs]
    return stored(tmp_path_factory.mktemp("uneven"), rows)


class Asked:
    """The command on the folder, and what it printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ["--config", str(folder / "prbench.yaml"), "--warehouse", str(folder / "data")]
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        assert main([*arguments, *self._where]) == code
        said = self._capsys.readouterr()
        return said.err if code else said.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


@pytest.fixture
def asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(folder, capsys)


def test_the_leaderboard_says_what_every_figure_rests_on(asked: Asked) -> None:
    rows = asked.json("leaderboard", "--judge", "a-judge")

    assert [1, 2, 3, 4] == [row["rank"] for row in rows]
    for row in rows:
        assert row["ci_low"] <= row["mean_score"] <= row["ci_high"]
        assert row["trials_ci_low"] <= row["trials_mean"] <= row["trials_ci_high"]
        assert row["mean_lower"] <= row["mean_score"] <= row["mean_upper"]
        assert (row["n_tasks_wanted"], row["n_trials"], row["is_small"]) == (12, 2, True)
        assert row["is_below_bar"] == (row["coverage"] < 0.99)


def test_a_figure_below_the_bar_and_a_small_one_are_marked_and_the_marks_explained(asked: Asked) -> None:
    shown = asked("leaderboard", "--judge", "expert")

    below = [row["model"] for row in asked.json("leaderboard", "--judge", "expert") if row["is_below_bar"]]
    assert below == ["dirac"]  # two of its verdicts failed
    assert [line.count("*") for line in shown.splitlines() if "dirac" in line and "│" in line] == [1]
    assert "* below the coverage bar of 99%, so based on only part of the split: dirac" in shown
    assert "° fewer than 50 tasks, or few that differ: the interval may be too narrow" in shown


def test_what_clipping_hides_who_has_no_verdict_and_which_ranks_are_possible_is_shown(
    uneven: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked(uneven, capsys)
    rows = {row["model"]: row for row in asked.json("leaderboard")}
    shown = asked("leaderboard")
    line = {model: next(line for line in shown.splitlines() if f" {model} " in line and "│" in line) for model in rows}
    below = rows["below"]

    assert (below["mean_score"], below["ci_low"], below["ci_high"]) == (0, 0, 0)
    assert f"{below['raw_mean_score']:.3f}, {below['raw_ci_low']:.3f} to {below['raw_ci_high']:.3f}" in line["below"]
    assert "A mean below 0 is shown as 0; ranks and `prbench diff` compare the unclipped means." in shown
    assert [(1, 1, 1), (2, 2, 3), (2, 2, 3), (None, None, None)] == [
        tuple(rows[model][name] for name in ("rank", "rank_low", "rank_high"))
        for model in ("good", "below", "alike", "unheard")
    ]
    assert "│ 1  " in line["good"]
    assert "│ 2 to 3 " in line["below"]
    assert "60 of 60, 59 in all trials" in line["good"]
    assert "not judged" in line["unheard"]
    assert "Not judged on a split by this judge: unheard" in shown
    assert "based on only part of the split" not in shown


def test_who_has_no_rank_and_who_stands_below_a_lower_score_is_said_with_the_tasks_that_ranks_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = {f"t{n}": [(10, "Accuracy"), (10, "Risk")] for n in range(10)}
    half, whole = [1, 0.0], [1, 1.0]
    rows = together(
        tasks_of(tasks),
        judged({task: half if n < 8 else whole for n, task in enumerate(tasks)}, "full", rubrics=tasks),
        judged({task: half if n else whole for n, task in enumerate(tasks) if n < 8}, "late", rubrics=tasks),
        judged({task: whole for n, task in enumerate(tasks) if n < 4}, "begun", rubrics=tasks),
    )
    warehouse = Warehouse(tmp_path)
    for table_name, of_table in rows.items():
        warehouse.write(table_name, of_table)
    warehouse.publish()

    assert main(["leaderboard", "--warehouse", str(tmp_path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "Ranks compare only the tasks with a complete trial for every ranked model (finance 8), so a higher score can "
        "stand below: full on finance."
    ) in shown
    assert "No rank: begun on finance (4 tasks). Ranked is who has a score on at least half as many tasks" in shown


def test_where_too_few_tasks_differ_the_leaderboard_has_no_interval_and_says_so(asked: Asked) -> None:
    shown = asked("leaderboard", "--by", "severity")
    rows = asked.json("leaderboard", "--by", "severity")

    assert any(row["n_tasks"] > 1 and row["ci_low"] is None for row in rows)
    assert "No interval: fewer than 5 tasks differ from the most common value." in shown
    assert "Some intervals are missing" not in shown


@pytest.mark.parametrize("breakdown", BREAKDOWNS)
def test_every_breakdown_is_shown_with_its_label_behind_the_split(asked: Asked, breakdown: str) -> None:
    rows = asked.json("leaderboard", "--by", breakdown, "--judge", "a-judge")
    kept = {"decision_type", "economic_pathway"}  # no task of this world has such a label

    assert bool(rows) == (breakdown not in kept)
    assert all(list(row)[:2] == ["split", breakdown] for row in rows)
    assert {row["score_name"] for row in rows} <= {
        "min_normalized" if breakdown in {"category", "severity"} else "score"
    }


def test_hard_and_full_are_a_breakdown(asked: Asked) -> None:
    rows = asked.json("leaderboard", "--by", "subset", "--judge", "a-judge", "--model", "ada")

    assert [("full", 12), ("hard", 6)] == [(row["subset"], row["n_tasks_wanted"]) for row in rows]


def test_risk_is_critical_criteria_met_and_critical_mistakes_made(asked: Asked) -> None:
    rows = asked.json("leaderboard", "--risk", "--judge", "a-judge")

    assert {"ada", "bell", "curie", "dirac"} == {row["model"] for row in rows}
    assert all(row["n_critical"] == row["n_mistakes_possible"] == 24 for row in rows if not row["is_below_bar"])
    assert [row["mistake_share"] for row in rows] == sorted(row["mistake_share"] for row in rows)
    assert "critical mistakes" in asked("leaderboard", "--risk")


def test_any_split_is_scored_on_any_selection(asked: Asked) -> None:
    on_selection = {row["model"]: row for row in asked.json("leaderboard", "--selection", "s", "--judge", "a-judge")}
    hard = {row["model"]: row for row in asked.json("leaderboard", "--hard", "--judge", "a-judge")}

    assert list(on_selection) == sorted(on_selection, key=lambda model: -on_selection[model]["mean_score"])
    for model, row in on_selection.items():
        assert pytest.approx(hard[model]["mean_score"]) == row["mean_score"]
        for figure in ("n_tasks", "n_tasks_wanted", "coverage", "mean_lower", "mean_upper", "is_complete"):
            assert pytest.approx(hard[model][figure]) == row[figure], figure
        assert row["ci_low"] <= row["mean_score"] <= row["ci_high"]
    assert on_selection == {
        row["model"]: row for row in asked.json("leaderboard", "--selection", "latest", "--judge", "a-judge")
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--by", "topic", "--risk"], "prbench: --by and --risk cannot be combined"),
        (["--selection", "s", "--hard"], "prbench: --hard and --selection cannot be combined"),
        (["--score", "score", "--risk"], "prbench: --score and --risk cannot be combined"),
        (["--score", "nope"], "--score nope: no such score; prbench has score, min_normalized"),
        (["--selection", "nope"], "--selection nope: is no selection of this data set; there are s"),
        (["--model", "nope"], "--model nope: not found; known: ada, bell, curie, dirac"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(asked: Asked, arguments: list[str], said: str) -> None:
    error = asked("leaderboard", *arguments, code=2)

    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_judges_compares_pairs_sets_and_leniency(asked: Asked) -> None:
    found = asked.json("judges")
    pairs = {(pair["grader_a"], pair["grader_b"]): pair for pair in found["pairs"]}

    assert {("a-judge", "b-judge"), ("a-judge", "expert"), ("b-judge", "expert")} <= set(pairs)
    assert all(pair["is_member"] for names, pair in pairs.items() if "majority" in names)
    assert all(pair["kappa_ci_low"] <= pair["kappa"] <= pair["kappa_ci_high"] for pair in pairs.values())
    assert [("all graders", 3)] == [(row["grader_set"], row["n_graders"]) for row in found["sets"]]
    assert pytest.approx(0, abs=1e-3) == sum(row["leniency"] for row in found["leniency"])
    assert "Krippendorff's alpha" in asked("judges")
    assert {"ada", "bell", "curie", "dirac"} == {
        pair["label"] for pair in asked.json("judges", "--by", "model")["pairs"]
    }
    named = asked.json("judges", "--judge", "expert")["pairs"]
    assert all("expert" in (pair["grader_a"], pair["grader_b"]) for pair in named)


def test_agreement_with_people_is_pooled_over_them_and_the_mean_of_pairs_is_called_so(asked: Asked) -> None:
    pairs = {frozenset((p["grader_a"], p["grader_b"])): p for p in asked.json("judges")["pairs"]}
    found = {row["grader"]: row for row in asked.json("judges", "--people", "expert", "--people", "b-judge")}

    assert {"a-judge", "(people with each other)"} == set(found)
    with_people = [pairs[frozenset(("a-judge", person))]["kappa"] for person in ("expert", "b-judge")]
    assert pytest.approx(sum(with_people) / 2) == found["a-judge"]["kappa_pair_mean"]
    assert found["a-judge"]["kappa_ci_low"] < found["a-judge"]["kappa"] < found["a-judge"]["kappa_ci_high"]
    assert (
        sum(
            p["n"]
            for p in pairs.values()
            if {"a-judge"} < {p["grader_a"], p["grader_b"]} <= {"a-judge", "expert", "b-judge"}
        )
        == (found["a-judge"]["n"])
    )
    assert pytest.approx(pairs[frozenset(("expert", "b-judge"))]["kappa"]) == found["(people with each other)"]["kappa"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["judges", "--judge", "nope"], "--judge nope: not found; known: a-judge, b-judge, expert, majority"),
        (["judges", "--people", "nope"], "--people nope: not found"),
        (["criteria", "suspect", "--judge", "nope"], "--judge nope: not found; known: a-judge, b-judge, expert"),
        (["lengths", "--split", "nope"], "--split nope: not found; known: finance"),
        (["criteria"], "Missing argument"),
    ],
)
def test_a_name_that_nothing_has_is_refused_in_one_line(asked: Asked, arguments: list[str], said: str) -> None:
    error = asked(*arguments, code=2)

    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_a_criterion_that_graders_differ_on_is_shown_once(asked: Asked) -> None:
    rows = asked.json("criteria", "disagreed", "-n", "500")

    assert len(rows) == len({(row["task_id"], row["criterion_id"]) for row in rows})
    titles = asked("criteria", "disagreed").splitlines()[2]
    assert "disagreement" in titles
    # These would be those of one of the graders, and nothing says of which.
    assert not any(title in titles for title in ("met", "responses", "models", "correlation"))


@pytest.mark.parametrize("which", ["never-met", "always-met", "disagreed", "suspect"])
def test_criteria_worth_a_look_are_found(asked: Asked, which: str) -> None:
    rows = asked.json("criteria", which, "-n", "500")
    fits = {
        "never-met": lambda row: row["met_share"] == 0,
        "always-met": lambda row: row["met_share"] == 1,
        "disagreed": lambda row: row["disagreement"] > 0,
        "suspect": lambda row: row["rest_correlation"] < 0,
    }[which]

    assert all(map(fits, rows))
    assert ("t00-c0" in {row["criterion_id"] for row in rows}) == (which == "never-met")
    assert asked("criteria", which)


def test_lengths_shows_the_rank_correlation_of_each_model_and_over_the_models(asked: Asked) -> None:
    rows = asked.json("lengths", "--judge", "a-judge")

    assert {"ada", "bell", "curie", "dirac", "(over the models)"} == {row["model"] for row in rows}
    assert {"chars_alnum", "completion_tokens"} == {row["measure"] for row in rows}
    assert all(-1 <= row["rank_correlation"] <= 1 for row in rows)
    assert all(row["is_small"] and (row["ci_low"] is None) == (row["n"] < 10) for row in rows)
    shown = asked("lengths", "--judge", "a-judge")
    assert "° fewer than 50 tasks or models; fewer than 10 have no interval" in shown
    assert all("°" in line for line in shown.splitlines() if "(over the models)" in line)
    assert "--score nope: no such score; prbench has score" in asked("lengths", "--score", "nope", code=2)


def test_a_criterion_that_several_judges_name_is_one_row_with_its_id(asked: Asked) -> None:
    rows = asked.json("criteria", "never-met", "-n", "1")
    shown = asked("criteria", "never-met", "-n", "1")

    assert {(row["task_id"], row["criterion_id"]) for row in rows} == {("t00", "t00-c0")}
    assert [row["judge"] for row in rows] == ["a-judge", "b-judge", "expert"]
    (line,) = [line for line in shown.splitlines() if "t00" in line]
    assert "t00-c0" in line
    assert "a-judge, b-judge, expert" in line


def test_a_line_separates_what_is_ranked_under_different_judges(asked: Asked) -> None:
    under_all = asked("leaderboard").splitlines()
    under_one = asked("leaderboard", "--judge", "a-judge").splitlines()

    separators = [place for place, line in enumerate(under_all) if line.startswith("├")]
    judges = [line.split("│")[4].strip() for line in under_all if line.startswith("│")]
    assert judges == sorted(judges)
    assert len(separators) == len(set(judges)) - 1 == 2
    assert not any(line.startswith("├") for line in under_one)


@pytest.mark.parametrize("arguments", [
    ["leaderboard"], ["leaderboard", "--hard"], ["leaderboard", "--by", "topic"], ["leaderboard", "--risk"],
    ["leaderboard", "--selection", "latest"], ["lengths"], ["criteria", "never-met", "-n", "500"], ["status"],
], ids=" ".join)  # fmt: skip
def test_people_who_label_are_a_judge_only_where_they_are_named(
    labelled: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    asked = Asked(labelled, capsys)
    judges, named = ({row["judge"] for row in asked.json(*arguments, *more)} for more in ([], ["--judge", "expert"]))

    assert "expert" not in judges
    assert "expert" in named


def test_models_are_compared_under_judges_and_a_judge_with_people_by_name(
    labelled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Asked(labelled, capsys)
    of_models, with_people = (
        asked.json("diff", *names)["comparisons"] for names in (["ada", "bell"], ["a-judge", "expert"])
    )

    assert ["a-judge", "b-judge"] == [each["first"]["judge"] for each in of_models]
    assert {"expert"} == {each["second"]["judge"] for each in with_people}


def test_notes_name_a_few_models_and_count_the_others() -> None:
    from flows.cli.leaderboard_table import notes_on

    job = job_on("sample", Path("nowhere"))
    records = [
        {"judge": "a-judge", "model": f"model-{number:02d}", "is_below_bar": True, "is_judged": True, "is_small": False}
        for number in range(32)
    ]
    line = next(line for line in notes_on(job, records) if line.startswith("*"))
    assert line.endswith(": model-00, model-01, model-02, model-03, model-04 and 27 more")
