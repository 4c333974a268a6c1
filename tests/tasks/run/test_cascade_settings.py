"""A cascade in the configuration: its judge configuration, its identity, and refusals with the
key's path.
"""

from pathlib import Path
from typing import Any

import pytest

from flows.run.config import refuse_unknown_names
from flows.run.settings_problems import sound_settings
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import JudgeConfig, judge_configs, refuse_unlike_gradings
from tasks.run.run_context import callees
from tests.kit import job_on

CHEAP = {
    "name": "openai/gpt-4.1-mini",
    "label": "cheap",
    "trials": 2,
    "logprobs": True,
}
STRONG = {"name": "openai/o4-mini", "label": "strong"}
WHEN = {"weight_above": 7}


def cascade(**parts: Any) -> dict[str, Any]:
    return {
        "label": "careful",
        "cascade": {
            "first": "cheap",
            "then": "strong",
            "when": WHEN,
            **parts,
        },
    }


def job_of(*judges: dict[str, Any], benchmark: str = "prbench") -> Job:
    return job_on("sample", Path("nowhere"), benchmark=benchmark, judges=list(judges))


def judge_config_of(
    *judges: dict[str, Any], benchmark: str = "prbench"
) -> JudgeConfig:
    [judge_config] = judge_configs(
        job_of(*judges, benchmark=benchmark), load_benchmark(benchmark)
    )
    return judge_config


def test_judges_that_a_cascade_names_judge_only_within_it():
    job = job_of(
        CHEAP, STRONG, cascade(), {"name": "openai/gpt-4o", "label": "other"}
    )

    judges = [judge.label for judge in job.settings.judges]
    cascades = [(callee.label, callee.cascade) for callee in callees(job)]
    assert judges == ["careful", "other"]
    assert cascades == [("cheap", "careful"), ("strong", "careful"), ("other", None)]


def test_a_named_judge_that_judges_only_within_a_cascade_is_refused():
    job = job_of(CHEAP, STRONG, cascade())
    job = job.model_copy(update={"named_judges": ("cheap",)})

    message = r"^--judge cheap: .* judges only within a cascade$"
    with pytest.raises(UsageError, match=message):
        refuse_unknown_names(job)


def test_settings_survive_being_written_down_and_read_again():
    when = {"disagreement": True, "categories": ["b", "a"]}
    settings = job_of(CHEAP, STRONG, cascade(when=when)).settings

    restored = Settings.model_validate(settings.model_dump(mode="json"))

    assert restored == settings
    [judge] = restored.judges
    assert judge.cascade is not None
    assert judge.cascade.members == settings.judges[0].members


def test_a_cascade_has_the_template_of_both_judges():
    strong = judge_config_of(STRONG)

    judge_config = judge_config_of(CHEAP, STRONG, cascade())

    assert judge_config.template_hash == strong.template_hash


@pytest.mark.parametrize(
    ("judges", "printed"),
    [
        (
            [CHEAP, STRONG, cascade(first="cheep")],
            "judges[2].cascade.first: there is no judge 'cheep'",
        ),
        (
            [CHEAP, STRONG, cascade(then="cheap")],
            "judges[2].cascade.then: is the first judge too",
        ),
        (
            [CHEAP, STRONG, cascade(), cascade(then="careful") | {"label": "b"}],
            "judges[3].cascade.then: there is no judge 'careful'",
        ),
        (
            [CHEAP, STRONG, cascade(when={})],
            "judges[2].cascade.when: is empty; give at least one of disagreement",
        ),
        (
            [CHEAP | {"trials": 1}, STRONG, cascade(when={"disagreement": True})],
            "judges[2].cascade.when.disagreement: 'cheap' is called once; give it `trials: 2`",
        ),
        (
            [
                CHEAP | {"logprobs": False},
                STRONG,
                cascade(when={"confidence_below": 0.9}),
            ],
            (
                "judges[2].cascade.when.confidence_below: 'cheap' has no confidence; give it"
                " `logprobs: true`"
            ),
        ),
        (
            [CHEAP, STRONG, cascade(when={"weight_abov": 3})],
            "judges[2].cascade.when.weight_abov: there is no such key",
        ),
        (
            [CHEAP, STRONG | {"mode": "batch"}, cascade()],
            "judges[2].cascade.when: cannot wait for 'cheap' or 'strong'",
        ),
        (
            [CHEAP, STRONG | {"rubric": "examples_removed"}, cascade()],
            "judges[2].cascade.then: judges `rubric: examples_",
        ),
        (
            [CHEAP, STRONG, cascade() | {"trials": 2}],
            "judges[2]: `trials` is a setting of the judges of a cascade",
        ),
        (
            [CHEAP, STRONG, {"cascade": cascade()["cascade"]}],
            "judges[2]: a cascade needs a `label`",
        ),
        ([CHEAP, CHEAP, STRONG, cascade()], "label 'cheap' is used twice"),
        ([CHEAP | {"api": "responses"}], "judges[0]: `logprobs` is for `api: chat`"),
        (
            [CHEAP | {"mode": "batch"}],
            "judges[0]: `logprobs` is for `api: chat` and `mode: live`",
        ),
    ],
)
def test_what_no_cascade_can_be_is_refused_with_the_path_of_its_key(judges, printed):
    _, problems = sound_settings({"dataset": {"source": "sample"}, "judges": judges})

    assert f"\n{printed}" in "\n" + "\n".join(problems).replace("judges: ", "")


def test_judges_that_grade_in_different_ways_are_refused_where_the_benchmark_says_how():
    judges = (CHEAP | {"grading": "binary"}, STRONG, cascade())
    [judge] = job_of(*judges).settings.judges

    assert judge_config_of(*judges).grading == "binary"
    message = "its judges grade in different ways: cheap binary, strong tern"
    with pytest.raises(UsageError, match=f"judge careful: {message}"):
        refuse_unlike_gradings(judge, load_benchmark("researchrubrics"))
