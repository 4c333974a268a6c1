"""Hashes of configurations, tasks and calls by literal values, as they are stored.

A test that fails means other code, never another value.
"""

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
CHEAP = {
    "name": "openai/cheap",
    "label": "cheap",
    "trials": 3,
}
STRONG = {"name": "openai/strong", "label": "strong"}


pytestmark = pytest.mark.usefixtures("without_addresses")


def judge_with(settings: dict[str, Any]) -> Judge:
    return Judge(
        **{
            "name": "openai/j",
            "label": "j",
            **settings,
        }
    )


def cascade(
    cheap: dict[str, Any] = CHEAP,
    strong: dict[str, Any] = STRONG,
    **when: Any,
) -> Judge:
    strong_judge = Judge(**strong)
    members = Cascade(
        first=Judge(**cheap), then=strong_judge, when=Escalation(**when)
    )
    return strong_judge.model_copy(update={"label": "cascade", "cascade": members})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "050f0c4e7f8a2a1ef0c138d86a1c455f"),
        ({"label": "another"}, "050f0c4e7f8a2a1ef0c138d86a1c455f"),
        ({"api_base": ADDRESS}, "213299bdabc9d274cc58581be1865060"),
        (
            {"name": "hosted_vllm/m", "api_base": ADDRESS},
            "37d02880568cc2b74bffd27a8ee9bf4a",
        ),
        ({"temperature": 0.5, "max_tokens": 900}, "254652baf6dabb078254affa5510c2a8"),
        ({"reasoning_effort": "low"}, "df587481a739d67e6b412736481fe770"),
        ({"params": {"top_p": 0.9, "seed": 1}}, "49678949e50a57737c2cc002368d349d"),
        # The same in another order.
        ({"params": {"seed": 1, "top_p": 0.9}}, "49678949e50a57737c2cc002368d349d"),
        ({"headers": {"X-Team": "eval"}}, "cd4864c15758c62192770993d8a28695"),
        ({"system_prompt": "Be brief."}, "d7070434133afaff1e91ea61b3655667"),
        ({"omits_think_tag": True}, "ea494bc04edfa8b6715cb604e5fff4d1"),
        ({"api": "responses"}, "def33f11272c7f7783bc18817e50b673"),
        ({"web_search": True, "seed": 1}, "c4c4ca49faaaac4e2f4edee7c184017d"),
        (
            {"name": "anthropic/m", "thinking_budget_tokens": 2048},
            "66f98be383608e55be4f22754deb8463",
        ),
        # None of these changes a reply.
        ({"timeout_s": 5.0, "stream": True}, "050f0c4e7f8a2a1ef0c138d86a1c455f"),
        ({"fallback": {"max_tokens": 100}}, "050f0c4e7f8a2a1ef0c138d86a1c455f"),
        ({"resample": "nightly"}, "050f0c4e7f8a2a1ef0c138d86a1c455f"),
        ({"ends_ok": ["finished"]}, "050f0c4e7f8a2a1ef0c138d86a1c455f"),
    ],
)
def test_a_model_keeps_its_hash(settings, expected):
    model = Model(
        **{
            "name": "openai/m",
            "label": "m",
            **settings,
        }
    )

    assert model_hash(model) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "cfce226348ff365cd27c33a1b524c2a0"),
        # None of these changes a verdict.
        (
            {
                "trials": 3,
                "context_tokens": 900,
                "logprobs": True,
                "stream": True,
                "ends_ok": ["finished"],
            },
            "cfce226348ff365cd27c33a1b524c2a0",
        ),
        ({"api_base": ADDRESS}, "c2c8de42501a4fd88cb8ad3a7a6272b1"),
        (
            {"name": "anthropic/j", "temperature": 0.0},
            "95a835fc3e9f3ad3686eded3ccd04e94",
        ),
        ({"temperature": 0.0, "max_tokens": 700}, "43b01c51f69cac0d7c955e85acbbc5c7"),
        ({"explanation_chars": 300}, "34891ff53cae7a48422c82c1fbb2c9fd"),
        ({"structured_output": True}, "a504bd995b5fd023593ec28df5a8fc61"),
        ({"structured_output": False}, "e7f2b6162391d9d84fb5b3ecf928634d"),
        ({"rubric": "augmented"}, "5fb0d735cd7eb203c1c5e058f8d24678"),
        ({"criteria_per_call": 4}, "9e9e0afe30c7154bbe20bc61ca545e6e"),
        ({"criteria_per_call": "all"}, "6f58efb0621d52acf73b0c838c2bc020"),
        ({"omits_think_tag": True}, "e35a32b5e4a945ff7000c20f392980b8"),
        ({"headers": {"X-Team": "eval"}}, "510ebe0bb307ed94952ec3742385b498"),
        (
            {
                "explanation_chars": 300,
                "structured_output": True,
                "rubric": "examples_removed",
                "criteria_per_call": 2,
                "omits_think_tag": True,
            },
            "e90131ae31a4569b49c02b25f3d6714b",
        ),
        ({"kind": "decisions"}, "fa1b510082653b170739490b9dcf31ee"),
        # The default threshold.
        ({"kind": "decisions", "threshold": 0.5}, "fa1b510082653b170739490b9dcf31ee"),
        ({"kind": "decisions", "threshold": 0.7}, "47f78b8ea016c08ae0ba150b4a30974d"),
        (
            {"kind": "decisions", "grading": "ternary"},
            "a63a92b97e203825c48ccf2c6085865b",
        ),
        (
            {"kind": "decisions", "criteria_per_call": 8},
            "667661eaf0fbde9b825fee19fffbf655",
        ),
    ],
)
def test_a_judge_keeps_its_hash(settings, expected):
    judge = judge_with(settings)

    assert judge_target(judge).config_hash == expected


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        (cascade(disagreement=True), "c274693628aaf53a02a47e7215e9174e"),
        (cascade(weight_above=5.0), "1fada4b0044b8049aa74423f2c02eefc"),
        (
            cascade(categories=("b", "a"), severities=("critically important",)),
            "211ee769e2ed03bbf436d0194aab3ead",
        ),
        # The same in another order.
        (
            cascade(severities=("critically important",), categories=("a", "b")),
            "211ee769e2ed03bbf436d0194aab3ead",
        ),
        (
            cascade(disagreement=True, kinds=("number",), confidence_below=0.8),
            "d2e0285244c8b59166ac7f79155bee80",
        ),
        (
            cascade({**CHEAP, "criteria_per_call": 4}, weight_above=5.0),
            "6a05a1a4bc7152447ecf7366292e1f96",
        ),
        (
            cascade({**CHEAP, "temperature": 0.5}, weight_above=5.0),
            "36752b446861f947def77eed460d6a27",
        ),
        (
            cascade(strong={**STRONG, "seed": 1}, weight_above=5.0),
            "c0ec4d22d61f5d37d9d9f40fb6c62e2c",
        ),
        (
            cascade({**CHEAP, "trials": 2}, disagreement=True),
            "6b6233bbe9f058b507240326ff3e460a",
        ),
        (cascade(weight_above=0.0), "07a3a48ad03519427bb87354683f9df4"),
        # None of these identifies a cascade.
        (
            cascade(
                {
                    **CHEAP,
                    "label": "c",
                    "trials": 5,
                    "logprobs": True,
                    "timeout_s": 1.0,
                },
                {**STRONG, "label": "s"},
                weight_above=5.0,
            ),
            "1fada4b0044b8049aa74423f2c02eefc",
        ),
    ],
)
def test_a_cascade_keeps_its_hash(judge, expected):
    assert judge_target(judge).config_hash == expected


@pytest.mark.parametrize(
    ("benchmark", "settings", "expected"),
    [
        ("prbench", {}, "c9f1587885b55eeeaf10f6d92bf49d5f"),
        ("prbench", {"template": "binary_v1"}, "99177e395235a93e544d4963997a3b79"),
        ("prbench", {"criteria_per_call": 4}, "ad73d1c4dd8261afe3cbedb4650da505"),
        ("prbench", {"kind": "decisions"}, "ecc49729c5fb2b2d36b3cb22296a178c"),
        ("healthbench", {}, "3734bd51b87b250e7f5136c3359723e4"),
        (
            "healthbench",
            {"template": "healthbench_v1"},
            "e897b9fd84c5dcf69aee20776b4dedac",
        ),
        ("researchrubrics", {}, "389b34f90cfbb3de989b4066a59671b7"),
        (
            "researchrubrics",
            {"grading": "ternary"},
            "389b34f90cfbb3de989b4066a59671b7",
        ),
        (
            "researchrubrics",
            {"grading": "ternary", "criteria_per_call": "all"},
            "fb1f99485f7f3f0fa8797a859aa93eed",
        ),
        (
            "researchrubrics",
            {"grading": "binary"},
            "5d96c5b1570d8d6328f5c10fa3ad8539",
        ),
        (
            "researchrubrics",
            {"template": "researchrubrics_ternary_v1"},
            "411a18cf21b3e29784a6f41693a9b406",
        ),
        (
            "researchrubrics",
            {"grading": "binary", "template": "researchrubrics_binary_v1"},
            "682c3f7ef6a048272383cc6de6e919e2",
        ),
    ],
)
def test_a_judge_keeps_the_hash_of_its_template(benchmark, settings, expected):
    judge = judge_with(settings)

    [judge_config] = configs_of(judge, load_benchmark(benchmark))

    assert judge_config.template_hash == expected


def test_a_cascade_of_two_templates_keeps_the_hash_of_both():
    judge = cascade({**CHEAP, "template": "binary_v1"}, weight_above=5.0)

    [judge_config] = configs_of(judge, load_benchmark("prbench"))

    assert judge_config.template_hash == "8a0e0f66d07bc426a9ba9f057865b662"


@pytest.mark.parametrize(
    ("benchmark", "row", "expected"),
    [
        ("prbench", hub_row("t1"), "23704afcdc7abca2ca7e0083205a62a6"),
        ("prbench", hub_row("t1", field="Legal"), "3a9c22a0ba9b35f936506c474ca3054e"),
        # The canary is no content.
        (
            "prbench",
            hub_row("t1", canary="canary"),
            "23704afcdc7abca2ca7e0083205a62a6",
        ),
        ("healthbench", HEALTH_ROW, "62d9e8b74b9f9669e5392bf5cc4ca5d1"),
        ("researchrubrics", research_row(1), "63fde34ddad106e895a2a6cbd3da7520"),
    ],
)
def test_a_task_keeps_its_content_hash(benchmark, row, expected):
    task = load_benchmark(benchmark).parse_row(row)

    assert task.content_hash == expected


@pytest.mark.parametrize(
    ("benchmark", "row", "expected"),
    [
        ("prbench", hub_row("t1"), "6cab098c1db829ca18c5fd4c595bcd0e"),
        ("healthbench", HEALTH_ROW, "ef8bc345ba11c9241bed46a53df6c49b"),
        ("researchrubrics", research_row(1), "32b37bd66bb1cf0743ea0459934f8af6"),
    ],
)
def test_a_task_keeps_the_id_of_its_conversation(benchmark, row, expected):
    task = load_benchmark(benchmark).parse_row(row)

    assert task.conversation_id == expected


PROMPT = [{"role": "user", "content": "Is it met?"}]


@pytest.mark.parametrize(
    ("settings", "changed", "expected"),
    [
        ({}, {}, "b5c43e16dfd49dbca6df36f28a2ddc42"),
        ({}, {"cell": "another"}, "b5c43e16dfd49dbca6df36f28a2ddc42"),
        # None of these is sent.
        (
            {},
            {"priority": (3,), "is_batched": True},
            "b5c43e16dfd49dbca6df36f28a2ddc42",
        ),
        ({}, {"trial": 2}, "f9081feb94ff6a64608e3c2f86c57582"),
        ({}, {"vintage": "2026-11-28"}, "e415e1897c4893d6cead8866cca303d5"),
        (
            {},
            {"response_format": reply_format(None, "binary")},
            "2fabd581cf1d0899e5d41e66f48b7632",
        ),
        (
            {},
            {"response_format": reply_format(300, "ternary", is_group=True)},
            "b8cd410bf48db216c86ccf2c7159f17f",
        ),
        (
            {"temperature": 0.0, "max_tokens": 9},
            {},
            "051f8d07f1760d17c52da8953b73f2a7",
        ),
        ({"headers": {"X-Team": "eval"}}, {}, "3baed78be282e339977d1124f47de26a"),
        ({"api_base": ADDRESS}, {}, "b05abc877321c285b89924bc9977f7a9"),
        ({"api": "responses"}, {}, "ba8380e5ac9170bba28178592aca9fa3"),
        (
            {
                "name": "anthropic/j",
                "seed": 1,
                "web_search": True,
                "thinking_budget_tokens": 2048,
                "reasoning_effort": "low",
                "params": {"top_p": 0.9},
            },
            {},
            "a763ca472adc1272bb24e1121e6f2419",
        ),
        # None of these is sent.
        (
            {"explanation_chars": 300, "omits_think_tag": True, "ends_ok": ["end"]},
            {},
            "b5c43e16dfd49dbca6df36f28a2ddc42",
        ),
        (
            {"kind": "decisions"},
            {"questions": questions_on(["Cites the law"], "binary")},
            "f4375e71a291ff30510573fb4557a8b5",
        ),
    ],
)
def test_the_call_of_a_judge_keeps_its_key(settings, changed, expected):
    judge = judge_with(settings)
    parts = {
        "target": judge_target(judge),
        "messages": PROMPT,
        "cell": "v",
        **changed,
    }

    call = Call(**parts)

    assert call.key(call.parameters()) == expected


def test_the_call_of_a_model_with_its_fallback_keeps_its_key():
    model = Model(name="openai/m", max_tokens=900, fallback={"max_tokens": 100})
    call = Call(target=target_of(model), messages=PROMPT, cell="r")

    key = call.key(call.parameters(call.target.last_resort))

    assert key == "7857c90dd6c5019a6f65151c7f9f3079"
