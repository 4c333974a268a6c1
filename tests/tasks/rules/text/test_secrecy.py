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


SCHEMA_OF_TOOL = {"properties": {"api_key": {"type": "string"}}}


@pytest.mark.parametrize("name", SECRET)
def test_the_name_of_a_secret_is_recognized(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", OPEN)
def test_any_other_name_is_not_that_of_a_secret(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "value", ["${A}", "Bearer ${A_1}", "${A}:${B}", "Token token=${A}", " ${A} "]
)
def test_a_reference_may_have_a_word_beside_it(value):
    assert is_reference(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "sk-1",
        "Bearer sk-1",
        "sk-1-${A}",
        "${A}x1",
        "$A",
        "${}",
        "longwordthatisnoscheme ${A}",
    ],
)
def test_a_value_with_a_literal_secret_is_no_reference(value):
    assert not is_reference(value)


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
        ({"token": "${A}", "logprobs": True, "api_key": None}, None),
        ({"tools": [{"function": {"parameters": SCHEMA_OF_TOOL}}]}, None),
    ],
)
def test_a_literal_secret_is_found_with_its_path(value, path):
    assert literal_secret(value, "params") == path
