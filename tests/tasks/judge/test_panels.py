"""Panels: verdicts by the majority of other judges, from their stored verdicts."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.figures.scope import Scope
from tasks.judge.panels import count_votes, lacks_panel_verdicts
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import judge_configs, refuse_unlike_gradings
from tests.kit import (
    Row,
    admitted,
    criterion,
    endpoint,
    few_published,
    job_on,
    response,
    rows_in,
    verdict,
    write_jsonl,
    written,
)
from tests.tasks.judge.values import distinct
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("without_scores")
BOARDS = ("leaderboard", "run_costs")
SAMPLE = {"source": "sample"}
ADDRESS = "http://localhost/v1"
CRITERIA = [criterion("t0", position, 5.0) for position in range(4)]
RESPONSE = response("t0", "alpha")
JUDGES = [
    *(endpoint(label, ADDRESS) for label in ("a", "b", "c")),
    {"label": "panel", "majority": ["c", "a", "b"]},
]
VOTES = {
    "a": (1.0, 1.0, 0.0, None),
    "b": (1.0, 0.0, 0.0, 1.0),
    "c": (0.0, 1.0, 0.0, 0.0),
}
"""Judge -> its decision on each criterion."""


def votes_rows(job: Job, votes: Mapping[str, tuple[float | None, ...]]) -> list[Row]:
    rows = []
    for judge_config in judge_configs(job, load_benchmark("prbench")):
        columns = judge_config.columns
        decisions = votes.get(f"{columns['judge']}#{columns['judge_trial']}")
        decisions = decisions or votes.get(columns["judge"], ())
        for criterion_row, value in zip(CRITERIA, decisions, strict=False):
            rows.append(
                verdict(
                    RESPONSE,
                    criterion_row,
                    value,
                    cost_usd=0.25,
                    **columns,
                )
            )
    return rows


def store(job: Job, votes: Mapping[str, tuple[float | None, ...]]):
    rows = votes_rows(job, votes)
    written(job.warehouse, {"verdicts": rows}, job.data.revision).publish()


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """A job with a panel of three, on a task with a response."""
    folder = tmp_path_factory.mktemp("panels")
    source = write_jsonl(folder / "data.jsonl", [{"not": "read"}])
    job = job_on(source, folder / "warehouse", judges=JUDGES)
    tables = {
        **admitted(["t0"], split="data", n_criteria=4),
        "criteria": CRITERIA,
        "responses": [RESPONSE | {"cost_usd": 2.0}],
    }
    with few_published(*BOARDS):
        written(job.warehouse, tables, job.data.revision).publish()
    return job


def decisions(job: Job, judge: str = "panel", judge_trial: int = 1) -> list[Any]:
    query = """
        select value from verdicts where judge = ? and judge_trial = ? order by criterion_id
    """
    return [row["value"] for row in rows_in(job, query, judge, judge_trial)]


def test_a_panel_decides_as_more_than_half_of_its_members(job):
    store(job, VOTES)

    report = count_votes(job)

    assert decisions(job) == [1.0, 1.0, 0.0, None]
    assert report.notes == ["4 criteria counted for panel"]


def test_a_criterion_without_a_majority_says_so(job):
    store(job, VOTES)
    count_votes(job)

    [row] = rows_in(job, "from verdicts where judge = 'panel' and value is null")
    assert row["status"] == "no_majority"
    assert row["criterion_id"] == "t0-c3"


def test_votes_are_counted_once_all_members_have_been_asked(job):
    store(job, {"a": VOTES["a"], "b": VOTES["b"]})

    assert count_votes(job).rows == 0


def test_a_panel_whose_members_all_failed_has_no_verdict(job):
    store(job, dict.fromkeys(VOTES, (None,) * 4))

    assert count_votes(job).rows == 0
    with Warehouse(job.warehouse).reader() as reader:
        assert not lacks_panel_verdicts(job, reader)


def test_votes_that_were_counted_are_not_counted_again(job):
    store(job, VOTES)
    count_votes(job)

    assert count_votes(job).rows == 0
    with Warehouse(job.warehouse).reader() as reader:
        assert not lacks_panel_verdicts(job, reader)


def test_a_panel_decides_what_it_left_open_when_a_failed_member_decides(job):
    store(job, VOTES)
    count_votes(job)
    store(job, {"a": (1.0, 1.0, 0.0, 1.0)})

    count_votes(job)

    assert decisions(job) == [1.0, 1.0, 0.0, 1.0]


def test_a_board_shows_what_the_votes_of_a_panel_cost_and_a_run_pays_none_of_it(job):
    with few_published(*BOARDS):
        store(job, VOTES)
        count_votes(job)

    [row] = rows_in(
        job,
        "from leaderboard where judge = 'panel' and is_primary and split = 'data'",
    )
    panel_verdicts = rows_in(job, "from verdicts where judge = 'panel'")
    assert row["cost_usd"] == pytest.approx(2.0 + 4 * 3 * 0.25)
    assert distinct(panel_verdicts, "cost_usd") == {None}
    assert rows_in(job, "from run_costs where called_model = 'panel'") == []


def with_judges(job: Job, *judges: Mapping[str, Any]) -> Job:
    settings = Settings.model_validate({"dataset": SAMPLE, "judges": judges})
    return job.with_settings(judges=settings.judges)


def test_repetitions_of_one_judge_can_vote(job):
    thrice = {"label": "thrice", "majority": ["a"], "votes": 3}
    job = with_judges(job, endpoint("a", ADDRESS, trials=6), thrice)
    votes = {f"a#{trial}": (float(trial > 4),) * 4 for trial in range(1, 7)}
    store(job, votes)

    count_votes(job)

    # The first trial of the panel counts trials 1 to 3, its second one 4 to 6.
    assert decisions(job, "thrice", 1) == [0.0] * 4
    assert decisions(job, "thrice", 2) == [1.0] * 4


def test_trial_by_trial_a_panel_counts_the_same_trial_of_its_members(job):
    judges = [endpoint(label, ADDRESS, trials=2) for label in ("a", "b", "c")]
    job = with_judges(job, *judges, JUDGES[-1])
    votes = {f"{label}#1": (0.0,) * 4 for label in "abc"}
    votes |= {f"{label}#2": (1.0,) * 4 for label in "abc"}
    store(job, votes)

    count_votes(job)

    assert decisions(job, judge_trial=1) == [0.0] * 4
    assert decisions(job, judge_trial=2) == [1.0] * 4


def panel_hash(job: Job, *judges: Mapping[str, Any]) -> str:
    configs = judge_configs(with_judges(job, *judges), load_benchmark("prbench"))
    hashes = {config.judge_config_hash for config in configs if config.panel}
    return hashes.pop()


def test_the_order_of_the_members_is_no_part_of_a_panels_identity(shared):
    other_order = {"label": "panel", "majority": ["b", "c", "a"]}

    assert panel_hash(shared, *JUDGES) == panel_hash(shared, *JUDGES[:3], other_order)


def test_members_that_exchange_their_templates_make_another_panel(shared):
    def hashes(template_a: str, template_b: str) -> set[tuple[str, str]]:
        judges = [
            endpoint("a", ADDRESS, template=template_a),
            endpoint("b", ADDRESS, template=template_b),
            *JUDGES[2:],
        ]
        configs = judge_configs(
            with_judges(shared, *judges), load_benchmark("prbench")
        )
        return {
            (config.judge_config_hash, config.template_hash)
            for config in configs
            if config.panel
        }

    assert hashes("binary_v1", "binary_v2") != hashes("binary_v2", "binary_v1")


def test_a_member_with_other_parameters_makes_another_panel(shared):
    changed = endpoint("a", ADDRESS, temperature=0.5)

    assert panel_hash(shared, *JUDGES) != panel_hash(shared, changed, *JUDGES[1:])


def test_the_number_of_votes_is_part_of_a_panels_identity(shared):
    judges = [endpoint(label, ADDRESS, trials=3) for label in ("a", "b", "c")]
    panel = {"label": "panel", "majority": ["a", "b", "c"], "votes": 3}

    assert panel_hash(shared, *judges, panel) != panel_hash(
        shared, *judges, JUDGES[-1]
    )


def judges_with_boards(job: Job) -> set[str]:
    with Warehouse(job.warehouse).reader() as reader:
        return {row["judge"] for row in Scope(job, reader).judge_configs}


def test_a_member_that_only_the_panel_configures_judges_without_a_board(job):
    panel = {"label": "panel", "majority": ["a", "b", JUDGES[2]]}
    own_job = with_judges(job, *JUDGES[:2], panel)
    with few_published(*BOARDS):
        store(own_job, VOTES)
        count_votes(own_job)

    assert decisions(own_job) == [1.0, 1.0, 0.0, None]
    assert judges_with_boards(own_job) == {"a", "b", "panel"}
    named_job = own_job.model_copy(update={"named_judges": ("c",)})
    assert judges_with_boards(named_job) == {"c"}


def test_a_panel_is_the_same_when_its_configuration_is_read_again():
    settings = Settings.model_validate({"dataset": SAMPLE, "judges": JUDGES})

    read_again = Settings.model_validate(settings.model_dump(mode="json"))

    assert read_again.judges == settings.judges


@pytest.mark.parametrize(
    ("panel", "reason"),
    [
        (
            {"majority": ["a", "b"]},
            "2 votes; a majority needs an odd number of at least 3",
        ),
        (
            {"majority": ["a"]},
            "1 votes; a majority needs an odd number of at least 3",
        ),
        ({"majority": ["a", "b", "b"]}, "names a judge twice"),
        ({"majority": ["a", "b", "d"]}, "there is no judge 'd'; there are a, b, c"),
        (
            {"majority": ["a"], "votes": 3},
            "a has too few repetitions; give it `trials: 3`",
        ),
        (
            {"majority": ["a", "b", "c"], "temperature": 0.0},
            "is a setting of the judges",
        ),
        (
            {"majority": ["a", "b", "c"], "name": "openai/x"},
            "`name` is a setting of the judges",
        ),
        (
            {"majority": ["a", "b", {"label": "d", "majority": ["a", "b", "c"]}]},
            "d is a panel or a cascade",
        ),
        (
            {"majority": ["a", "b", endpoint("c", "http://other/v1")]},
            "c has other settings elsewhere",
        ),
    ],
)
def test_an_impossible_panel_is_refused(panel, reason):
    judges = [*JUDGES[:3], {"label": "panel", **panel}]

    with pytest.raises(ValueError, match=reason):
        Settings.model_validate({"dataset": SAMPLE, "judges": judges})


def test_judges_that_grade_in_different_ways_are_no_panel(shared):
    judges = [endpoint("a", ADDRESS, grading="ternary"), *JUDGES[1:]]
    [panel] = [
        judge
        for judge in with_judges(shared, *judges).settings.judges
        if judge.majority
    ]

    with pytest.raises(UsageError, match="a ternary, b binary, c binary"):
        refuse_unlike_gradings(panel, load_benchmark("prbench"))


@pytest.mark.parametrize(
    ("members", "is_panel"),
    [
        (["a", "b", "c"], True),
        (["a", "b", "ana"], False),
        (["a", "b", "c", "ana"], False),
    ],
)
def test_an_odd_set_of_judges_is_refused_as_a_majority_because_it_is_a_panel(
    members, is_panel
):
    settings = {
        "dataset": SAMPLE,
        "judges": JUDGES[:3],
        "majorities": {"all": members},
    }
    reason = r"a panel; configure it as `\{label: all, majority: \[a, b, c\]\}`"

    with pytest.raises(ValueError, match=reason) if is_panel else nullcontext():
        Settings.model_validate(settings)
