"""Hashes of configurations, tasks and calls by literal values, as they are stored.

A test that fails means other code, never another value.
"""

import os
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.models import Cascade, Escalation, Judge, Model
from tasks.llm.request import Call
from tasks.rules.verdict import questions_on, reply_format
from tasks.run.judge_configs import configs_of, judge_target, model_hash, target_of
from tests.tasks.benchmarks.research import research_row
from tests.tasks.benchmarks.test_nested_values import HEALTH_ROW
from tests.tasks.dataset.rows import hub_row

ADDRESS = "http://localhost:8000/v1"
CHEAP = {"name": "openai/cheap", "label": "cheap", "trials": 3}
STRONG = {"name": "openai/strong", "label": "strong"}


@pytest.fixture(autouse=True)
def _without_addresses(monkeypatch):
    for name in list(os.environ):
        if name.endswith(("_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def cascade(cheap: dict[str, Any] = CHEAP, **when: Any) -> Judge:
    members = Cascade(
        first=Judge(**cheap),
        then=Judge(**STRONG),
        when=Escalation(**when),
    )
    return Judge(label="cascade", cascade=members, name="openai/strong")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, "050f0c4e7f8a2a1ef0c138d86a1c455f", id="plain"),
        pytest.param(
            {"label": "another"},
            "050f0c4e7f8a2a1ef0c138d86a1c455f",
            id="label",
        ),
        pytest.param(
            {"api_base": ADDRESS},
            "213299bdabc9d274cc58581be1865060",
            id="address",
        ),
        pytest.param(
            {"temperature": 0.5, "max_tokens": 900},
            "254652baf6dabb078254affa5510c2a8",
            id="parameters",
        ),
        pytest.param(
            {"reasoning_effort": "low"},
            "df587481a739d67e6b412736481fe770",
            id="effort",
        ),
        pytest.param(
            {"params": {"top_p": 0.9, "seed": 1}},
            "49678949e50a57737c2cc002368d349d",
            id="further parameters",
        ),
        pytest.param(
            {"params": {"seed": 1, "top_p": 0.9}},
            "49678949e50a57737c2cc002368d349d",
            id="in another order",
        ),
        pytest.param(
            {"headers": {"X-Team": "eval"}},
            "cd4864c15758c62192770993d8a28695",
            id="headers",
        ),
        pytest.param(
            {"system_prompt": "Be brief."},
            "d7070434133afaff1e91ea61b3655667",
            id="system prompt",
        ),
        pytest.param(
            {"omits_think_tag": True},
            "ea494bc04edfa8b6715cb604e5fff4d1",
            id="thinking",
        ),
        pytest.param(
            {"api": "responses"},
            "def33f11272c7f7783bc18817e50b673",
            id="responses API",
        ),
        pytest.param(
            {"timeout_s": 5.0, "stream": True},
            "050f0c4e7f8a2a1ef0c138d86a1c455f",
            id="without influence",
        ),
        pytest.param(
            {"fallback": {"max_tokens": 100}},
            "050f0c4e7f8a2a1ef0c138d86a1c455f",
            id="fallback",
        ),
        pytest.param(
            {"resample": "nightly"},
            "050f0c4e7f8a2a1ef0c138d86a1c455f",
            id="nightly",
        ),
    ],
)
def test_a_model_keeps_its_hash(settings, expected):
    model = Model(**({"name": "openai/m", "label": "m"} | settings))

    assert model_hash(model) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, "cfce226348ff365cd27c33a1b524c2a0", id="plain"),
        pytest.param(
            {"trials": 3, "context_tokens": 900, "logprobs": True},
            "cfce226348ff365cd27c33a1b524c2a0",
            id="same",
        ),
        pytest.param(
            {"api_base": ADDRESS},
            "c2c8de42501a4fd88cb8ad3a7a6272b1",
            id="address",
        ),
        pytest.param(
            {"temperature": 0.0, "max_tokens": 700},
            "43b01c51f69cac0d7c955e85acbbc5c7",
            id="parameters",
        ),
        pytest.param(
            {"explanation_chars": 300},
            "34891ff53cae7a48422c82c1fbb2c9fd",
            id="explanation",
        ),
        pytest.param(
            {"structured_output": True},
            "a504bd995b5fd023593ec28df5a8fc61",
            id="structured output",
        ),
        pytest.param(
            {"structured_output": False},
            "e7f2b6162391d9d84fb5b3ecf928634d",
            id="no structured output",
        ),
        pytest.param(
            {"rubric": "augmented"},
            "5fb0d735cd7eb203c1c5e058f8d24678",
            id="rubric",
        ),
        pytest.param(
            {"criteria_per_call": 4},
            "9e9e0afe30c7154bbe20bc61ca545e6e",
            id="groups",
        ),
        pytest.param(
            {"criteria_per_call": "all"},
            "6f58efb0621d52acf73b0c838c2bc020",
            id="whole rubrics",
        ),
        pytest.param(
            {"omits_think_tag": True},
            "e35a32b5e4a945ff7000c20f392980b8",
            id="thinking",
        ),
        pytest.param(
            {"headers": {"X-Team": "eval"}},
            "510ebe0bb307ed94952ec3742385b498",
            id="headers",
        ),
        pytest.param(
            {
                "explanation_chars": 300,
                "structured_output": True,
                "rubric": "examples_removed",
                "criteria_per_call": 2,
                "omits_think_tag": True,
            },
            "e90131ae31a4569b49c02b25f3d6714b",
            id="all settings",
        ),
        pytest.param(
            {"kind": "decisions"},
            "fa1b510082653b170739490b9dcf31ee",
            id="decisions",
        ),
        pytest.param(
            {"kind": "decisions", "threshold": 0.5},
            "fa1b510082653b170739490b9dcf31ee",
            id="default threshold",
        ),
        pytest.param(
            {"kind": "decisions", "threshold": 0.7},
            "47f78b8ea016c08ae0ba150b4a30974d",
            id="threshold",
        ),
        pytest.param(
            {"kind": "decisions", "grading": "ternary"},
            "a63a92b97e203825c48ccf2c6085865b",
            id="ternary decisions",
        ),
        pytest.param(
            {"kind": "decisions", "criteria_per_call": 8},
            "667661eaf0fbde9b825fee19fffbf655",
            id="decision groups",
        ),
    ],
)
def test_a_judge_keeps_its_hash(settings, expected):
    judge = Judge(**({"name": "openai/j", "label": "j"} | settings))

    assert judge_target(judge).config_hash == expected


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        pytest.param(
            cascade(disagreement=True),
            "c274693628aaf53a02a47e7215e9174e",
            id="disagreement",
        ),
        pytest.param(
            cascade(weight_above=5.0),
            "1fada4b0044b8049aa74423f2c02eefc",
            id="weight",
        ),
        pytest.param(
            cascade(categories=("b", "a"), severities=("critically important",)),
            "211ee769e2ed03bbf436d0194aab3ead",
            id="categories",
        ),
        pytest.param(
            cascade(severities=("critically important",), categories=("a", "b")),
            "211ee769e2ed03bbf436d0194aab3ead",
            id="categories in another order",
        ),
        pytest.param(
            cascade(disagreement=True, kinds=("number",), confidence_below=0.8),
            "d2e0285244c8b59166ac7f79155bee80",
            id="several conditions",
        ),
        pytest.param(
            cascade({**CHEAP, "criteria_per_call": 4}, weight_above=5.0),
            "6a05a1a4bc7152447ecf7366292e1f96",
            id="first of groups",
        ),
    ],
)
def test_a_cascade_keeps_its_hash(judge, expected):
    assert judge_target(judge).config_hash == expected


@pytest.mark.parametrize(
    ("benchmark", "settings", "expected"),
    [
        pytest.param("prbench", {}, "c9f1587885b55eeeaf10f6d92bf49d5f", id="prbench"),
        pytest.param(
            "prbench",
            {"template": "binary_v1"},
            "99177e395235a93e544d4963997a3b79",
            id="prbench v1",
        ),
        pytest.param(
            "prbench",
            {"criteria_per_call": 4},
            "ad73d1c4dd8261afe3cbedb4650da505",
            id="prbench groups",
        ),
        pytest.param(
            "prbench",
            {"kind": "decisions"},
            "ecc49729c5fb2b2d36b3cb22296a178c",
            id="prbench decisions",
        ),
        pytest.param(
            "healthbench",
            {},
            "3734bd51b87b250e7f5136c3359723e4",
            id="healthbench",
        ),
        pytest.param(
            "researchrubrics",
            {},
            "389b34f90cfbb3de989b4066a59671b7",
            id="researchrubrics",
        ),
        pytest.param(
            "researchrubrics",
            {"grading": "ternary"},
            "389b34f90cfbb3de989b4066a59671b7",
            id="ternary",
        ),
        pytest.param(
            "researchrubrics",
            {"grading": "ternary", "criteria_per_call": "all"},
            "fb1f99485f7f3f0fa8797a859aa93eed",
            id="ternary groups",
        ),
    ],
)
def test_a_judge_keeps_the_hash_of_its_template(benchmark, settings, expected):
    judge = Judge(**({"name": "openai/j", "label": "j"} | settings))

    (judge_config,) = configs_of(judge, load_benchmark(benchmark))

    assert judge_config.template_hash == expected


def test_a_cascade_of_two_templates_keeps_the_hash_of_both():
    judge = cascade({**CHEAP, "template": "binary_v1"}, weight_above=5.0)

    (judge_config,) = configs_of(judge, load_benchmark("prbench"))

    assert judge_config.template_hash == "8a0e0f66d07bc426a9ba9f057865b662"


@pytest.mark.parametrize(
    ("benchmark", "row", "expected"),
    [
        pytest.param(
            "prbench",
            hub_row("t1"),
            "23704afcdc7abca2ca7e0083205a62a6",
            id="prbench",
        ),
        pytest.param(
            "prbench",
            hub_row("t1", field="Legal"),
            "3a9c22a0ba9b35f936506c474ca3054e",
            id="another field",
        ),
        pytest.param(
            "prbench",
            hub_row("t1", canary="canary"),
            "23704afcdc7abca2ca7e0083205a62a6",
            id="another canary",
        ),
        pytest.param(
            "healthbench",
            HEALTH_ROW,
            "62d9e8b74b9f9669e5392bf5cc4ca5d1",
            id="healthbench",
        ),
        pytest.param(
            "researchrubrics",
            research_row(1),
            "63fde34ddad106e895a2a6cbd3da7520",
            id="researchrubrics",
        ),
    ],
)
def test_a_task_keeps_its_content_hash(benchmark, row, expected):
    task = load_benchmark(benchmark).parse_row(row)

    assert task.content_hash == expected


@pytest.mark.parametrize(
    ("benchmark", "row", "expected"),
    [
        pytest.param(
            "prbench",
            hub_row("t1"),
            "6cab098c1db829ca18c5fd4c595bcd0e",
            id="prbench",
        ),
        pytest.param(
            "healthbench",
            HEALTH_ROW,
            "ef8bc345ba11c9241bed46a53df6c49b",
            id="healthbench",
        ),
        pytest.param(
            "researchrubrics",
            research_row(1),
            "32b37bd66bb1cf0743ea0459934f8af6",
            id="researchrubrics",
        ),
    ],
)
def test_a_task_keeps_the_id_of_its_conversation(benchmark, row, expected):
    task = load_benchmark(benchmark).parse_row(row)

    assert task.conversation_id == expected


PROMPT = [{"role": "user", "content": "Is it met?"}]


@pytest.mark.parametrize(
    ("settings", "changed", "expected"),
    [
        pytest.param({}, {}, "b5c43e16dfd49dbca6df36f28a2ddc42", id="plain"),
        pytest.param(
            {},
            {"cell": "another"},
            "b5c43e16dfd49dbca6df36f28a2ddc42",
            id="another cell",
        ),
        pytest.param(
            {},
            {"priority": (3,), "is_batched": True},
            "b5c43e16dfd49dbca6df36f28a2ddc42",
            id="another order",
        ),
        pytest.param({}, {"trial": 2}, "f9081feb94ff6a64608e3c2f86c57582", id="trial"),
        pytest.param(
            {},
            {"vintage": "2026-11-28"},
            "e415e1897c4893d6cead8866cca303d5",
            id="vintage",
        ),
        pytest.param(
            {},
            {"response_format": reply_format(None, "binary")},
            "2fabd581cf1d0899e5d41e66f48b7632",
            id="structured output",
        ),
        pytest.param(
            {},
            {"response_format": reply_format(300, "ternary", is_group=True)},
            "b8cd410bf48db216c86ccf2c7159f17f",
            id="list of verdicts",
        ),
        pytest.param(
            {"temperature": 0.0, "max_tokens": 9},
            {},
            "051f8d07f1760d17c52da8953b73f2a7",
            id="parameters",
        ),
        pytest.param(
            {"headers": {"X-Team": "eval"}},
            {},
            "3baed78be282e339977d1124f47de26a",
            id="headers",
        ),
        pytest.param(
            {"api_base": ADDRESS},
            {},
            "b05abc877321c285b89924bc9977f7a9",
            id="address",
        ),
        pytest.param(
            {"explanation_chars": 300},
            {},
            "b5c43e16dfd49dbca6df36f28a2ddc42",
            id="not sent",
        ),
        pytest.param(
            {"kind": "decisions"},
            {"questions": questions_on(["Cites the law"], "binary")},
            "f4375e71a291ff30510573fb4557a8b5",
            id="decisions",
        ),
    ],
)
def test_the_call_of_a_judge_keeps_its_key(settings, changed, expected):
    judge = Judge(**({"name": "openai/j", "label": "j"} | settings))
    call = Call(
        **({"target": judge_target(judge), "messages": PROMPT, "cell": "v"} | changed)
    )

    assert call.key(call.parameters()) == expected


def test_the_call_of_a_model_with_its_fallback_keeps_its_key():
    model = Model(name="openai/m", max_tokens=900, fallback={"max_tokens": 100})
    call = Call(target=target_of(model), messages=PROMPT, cell="r")

    assert (
        call.key(call.parameters(call.target.last_resort))
        == "7857c90dd6c5019a6f65151c7f9f3079"
    )
