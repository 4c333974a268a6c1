"""Identities by literal values: if one of them changes, no stored row of that kind is found again.

The values stand here as they are stored. A test that fails means other code, never another value.
"""

from typing import Any

import pytest

from tasks.rules import identity

RESPONSE: dict[str, Any] = {
    "benchmark": "prbench",
    "dataset_revision": "4f1c",
    "task_id": "task-7",
    "conversation_id": "c0ffee",
    "model": "gpt-5",
    "model_config_hash": "ab12",
    "trial": 1,
    "vintage": "base",
}
VERDICT: dict[str, Any] = {
    "response_id": "r-1",
    "response_text": "Sell the bond.\n\nFür die Steuer: §23.",
    "criterion_id": "k3",
    "criterion_hash": "d00d",
    "judge": "o4-mini",
    "judge_config_hash": "cd34",
    "template_hash": "7e37",
    "grading": "binary",
    "judge_trial": 1,
}
CALL: dict[str, Any] = {
    "name": "openai/gpt-5",
    "endpoint": "",
    "parameters": {"temperature": 0.0, "max_tokens": 512},
    "messages": [{"role": "user", "content": "What is a bond?"}],
    "trial": 1,
    "vintage": "base",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "ec64d12534a833bc917d3e83f1e0225d"),
        ({"benchmark": "healthbench"}, "1eb52a220d6887d56af572e3a1d80b9f"),
        ({"dataset_revision": "5a2d"}, "b62c1ce7de2141e98cfe40247f43a82e"),
        ({"task_id": "task-8"}, "784e99d22c2e6aa8b07702e343b011a6"),
        ({"conversation_id": "decade"}, "d2b4f09ad132d82ab114f31ff7aaa4c5"),
        ({"model": "gpt-5-mini"}, "959625db9bb22506c636ad11cda02f9c"),
        ({"model_config_hash": "imported"}, "a8eae64fb5ac6cfc1698db6aef053af2"),
        ({"trial": 2}, "2d408f535932db9d7d852aec469c1508"),
        ({"vintage": "2026-11-28"}, "88c502d074b10ff48f2b0d286765872b"),
    ],
)
def test_a_response_keeps_its_id(changed, expected):
    actual = identity.response_id(**(RESPONSE | changed))

    assert actual == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "ac3f5e2985e655007d99debb681ee505"),
        ({"judge_vintage": "base"}, "ac3f5e2985e655007d99debb681ee505"),
        ({"judge_vintage": "2026-11-28"}, "aba249cbc930edfdd1050924fde8a6d1"),
        ({"response_id": "r-2"}, "77f013c5f4141a0eb512e791281b14ec"),
        ({"response_text": "Keep the bond."}, "c5fe533401f1d4200111fa50f624cf02"),
        ({"criterion_id": "k4"}, "6a18c01a242610e37325941e4f7bd243"),
        ({"criterion_hash": "d00e"}, "321a1437742f7be44341e6d6836040cf"),
        ({"judge": "person"}, "0cbf66b639bd47c96380be508a69fec3"),
        (
            {"judge_config_hash": "imported augmented"},
            "76fee1ee4eed669525111759d26d827e",
        ),
        ({"template_hash": "imported"}, "81041228437258eb69e19c18c04373bf"),
        ({"grading": "ternary"}, "93756d8f29fba4b364d5ab81bad4ae97"),
        ({"judge_trial": 2}, "d79534f37b4b6127c24fb7d6d9588aec"),
        ({"piece": ()}, "ac3f5e2985e655007d99debb681ee505"),
        ({"piece": ("d00d",)}, "da9180625404af83e4017184d114ac01"),
        ({"piece": ("d00d", "d00e")}, "15fa8251da9ba27ae295599da7b7fff1"),
        ({"piece": ["d00e", "d00d"]}, "0f28f635d00da93622e0aa418d1d6f59"),
        (
            {"piece": ("d00d",), "judge_vintage": "2026-11-28"},
            "e5b973aee92de1c31bf0d4f00b46d2c6",
        ),
    ],
)
def test_a_verdict_keeps_its_id(changed, expected):
    actual = identity.verdict_id(**(VERDICT | changed))

    assert actual == expected


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "569585c9a828b6cb3a87fa1c39cd9bdb"),
        # Parameters in another order.
        (
            {"parameters": {"max_tokens": 512, "temperature": 0.0}},
            "569585c9a828b6cb3a87fa1c39cd9bdb",
        ),
        # No parameters.
        ({"parameters": {}}, "d40049c88e7d7f90c810913201171a9d"),
        ({"name": "anthropic/claude"}, "7d894b3d76d22216f6ad85cb787e2e19"),
        # Message keys in another order.
        (
            {"messages": [{"content": "What is a bond?", "role": "user"}]},
            "569585c9a828b6cb3a87fa1c39cd9bdb",
        ),
        # Two messages.
        (
            {
                "messages": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "What is a bond?"},
                ]
            },
            "0f5f7c9742ee527047bb7d68d6978f24",
        ),
    ],
)
def test_a_call_keeps_its_key(changed, expected):
    actual = identity.call_key(**(CALL | changed))

    assert actual == expected


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        # Empty.
        ([], "f42c0c07b6314305c55a8057a444aa1c"),
        # One turn.
        ([("user", "What is a bond?")], "889f0a26ddbc60e9d354c2cab9973ac5"),
        # One turn from JSON.
        ([["user", "What is a bond?"]], "889f0a26ddbc60e9d354c2cab9973ac5"),
        # Two turns.
        (
            [
                ("user", "What is a bond?"),
                ("assistant", "A loan."),
                ("user", "Of whom?"),
            ],
            "32da3f489358e055b2d76654cb0e8c15",
        ),
        # Not ASCII.
        ([("user", "Was heißt „Anleihe“? 📈")], "8eba82dcd1adbb30edb1de52b2db3332"),
    ],
)
def test_a_conversation_keeps_its_id(messages, expected):
    actual = identity.conversation_id(messages)

    assert actual == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("", "d347c8d853b9a6fd030ff70b82cc1098"),
        ("Cites the law", "2137dd17d733c325b63f018d3ee34e8b"),
        (" Cites the law\n", "bc7ce732dffa7192d23f5062e92f505e"),
        ("Nennt § 23 EStG", "1d75d97a596e6787a66662c4770ab3a7"),
    ],
)
def test_a_criterion_keeps_its_hash(title, expected):
    actual = identity.criterion_hash(title)

    assert actual == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("Judge <<response>>",), "f02b90f90e872e29aee110418b4072d8"),
        (
            ("Judge <<response>>", "Search <<part>>"),
            "77c2754afc5b307444ee015bb4848206",
        ),
        (
            ("Judge <<response>>", "Search <<part>>", "Reply again."),
            "48a0e717636f8ef1fd5a890381edbaac",
        ),
    ],
)
def test_a_template_keeps_its_hash(texts, expected):
    actual = identity.template_hash(*texts)

    assert actual == expected


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ((), None),
        (("d00d",), "3ee65bae890459b2d7eea0a677163078"),
        (("d00d", "d00e"), "d7d29d93b6bfc2bbb8cfb38749515392"),
        (("d00e", "d00d"), "86881dcde230ac8e4bf1e1545fecba4d"),
    ],
)
def test_a_piece_keeps_its_hash(piece, expected):
    actual = identity.piece_hash(piece)

    assert actual == expected


def test_a_review_keeps_its_id():
    actual = identity.review_id(
        key={"dataset_revision": "4f1c", "benchmark": "prbench"},
        task_id="task-7",
        criterion_id="k3",
        criterion_hash="d00d",
        reviewer="person",
    )

    assert actual == "724bf9da72a40519f5826d7b85faca87"


def test_an_adopted_reply_keeps_its_key():
    actual = identity.adopted_key(
        earlier_key="ab12", address="http://localhost:8000/v1"
    )

    assert actual == "ab12 at http://localhost:8000/v1"
