"""Names of secrets, and values that only name an environment variable."""

import pytest

from tasks.rules.text.secrecy import is_reference, is_secret_name, literal_secret

SECRET = (
    "Authorization",
    "Proxy-Authorization",
    "X-Auth",
    "X-Auth-Token",
    "x_auth",
    "Ocp-Apim-Subscription-Key",
    "api-key",
    "x-api-key",
    "apiKey",
    "api_key",
    "x-goog-api-key",
    "X-Functions-Key",
    "X-Team-Token",
    "accessToken",
    "aws_secret_access_key",
    "client_secret",
    "password",
    "db_passwd",
    "Cookie",
    "credentials",
    "key",
    "token",
)
OPEN = (
    "max_tokens",
    "max_completion_tokens",
    "budget_tokens",
    "eos_token",
    "prompt_cache_key",
    "tokenizer",
    "author",
    "monkey",
    "keywords",
    "X-Team",
    "anthropic-beta",
    "skip_special_tokens",
    "stop_token_ids",
    "user",
    "path",
)


def test_names_of_secrets_are_told_from_others():
    assert [*SECRET] == [name for name in (*SECRET, *OPEN) if is_secret_name(name)]


def test_a_reference_may_have_a_word_beside_it_and_no_secret():
    secrets = (
        "",
        "sk-1",
        "Bearer sk-1",
        "sk-1-${A}",
        "${A}x1",
        "$A",
        "${}",
        "longwordthatisnoscheme ${A}",
    )
    assert all(
        map(
            is_reference,
            ("${A}", "Bearer ${A_1}", "${A}:${B}", "Token token=${A}", " ${A} "),
        )
    )
    assert not any(map(is_reference, secrets))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (
            {"extra_body": {"auth": {"kind": "plain", "value": "x"}}},
            "params.extra_body.auth.kind",
        ),
        (
            {"extra_body": {"keys": [{"api_key": "x"}]}},
            "params.extra_body.keys.api_key",
        ),
        (
            {"tools": [{"type": "mcp", "headers": {"X-Auth": "x"}}]},
            "params.tools.headers.X-Auth",
        ),
        ({"password": 1234}, "params.password"),
        ({"token": ["${A}", "x"]}, "params.token"),
        (
            {
                "token": "${A}",
                "logprobs": True,
                "api_key": None,
            },
            None,
        ),
        (
            {
                "tools": [
                    {
                        "function": {
                            "parameters": {
                                "properties": {"api_key": {"type": "string"}}
                            }
                        }
                    }
                ]
            },
            None,
        ),
    ],
)
def test_a_literal_secret_is_found_with_its_path(value, path):
    assert path == literal_secret(value, "params")
