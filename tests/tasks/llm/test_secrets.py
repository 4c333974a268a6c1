"""Secrets: filled in only at the call, and in nothing that is stored."""

import base64
import itertools
import json
import re
import urllib.parse
from pathlib import Path

import pytest

from tasks.llm.redaction import filled_in, redacted, safe
from tasks.llm.request import Call
from tasks.rules.errors import UsageError
from tests.faults.server import FaultServer, HttpResponse
from tests.tasks.llm.conftest import ROUTES, call_to, failed, in_turn

pytestmark = pytest.mark.usefixtures("hurried")

SECRET = "sk-planted-0123456789"


def traces(folder: Path, secret: str) -> list[str]:
    """The files below a folder that contain a secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [file.name for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.parametrize(
    "name",
    ["SOME_API_KEY", "HF_TOKEN", "CLIENT_SECRET", "MYSQL_PWD", "PROXY_AUTH"],
)
def test_a_value_whose_variable_is_named_like_a_secret_is_taken_out(
    name, monkeypatch
):
    monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("PRBENCH_PLACE", "somewhere-nice")
    monkeypatch.setenv("SHORT_TOKEN", "true")

    message = redacted(f"got {SECRET}, and '{SECRET}'")
    other_message = redacted("somewhere-nice is true")

    assert message == "got [redacted], and '[redacted]'"
    assert other_message == "somewhere-nice is true"


def test_a_value_that_the_configuration_names_is_taken_out_anyway(monkeypatch):
    monkeypatch.setenv("PRBENCH_TEAM", "blue")

    assert filled_in("team ${PRBENCH_TEAM}!") == "team blue!"
    assert redacted("the blue one") == "the [redacted] one"


def test_a_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("PRBENCH_NOWHERE", raising=False)

    with pytest.raises(UsageError, match="PRBENCH_NOWHERE"):
        filled_in("x ${PRBENCH_NOWHERE}")


@pytest.mark.parametrize(
    "url",
    [
        "http://user:pass-word@host/v1",
        "https://token@host:8000/v1",
        "redis://:pass-word@host",
        "https://user:pass@word@host/v1",
    ],
)
def test_credentials_in_an_address_are_taken_out(url):
    message = redacted(f"cannot reach {url} today")

    assert not re.search("user|pass|word|token", message)
    assert "host" in message


def test_a_secret_that_begins_with_another_is_taken_out_whole(monkeypatch):
    monkeypatch.setenv("A_KEY", "planted-01")
    monkeypatch.setenv("B_KEY", "planted-01-and-more")

    assert "more" not in redacted("it is planted-01-and-more")


def test_a_message_is_one_short_line_without_half_a_secret(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", SECRET)

    # The line is cut at 300 characters.
    for length in range(270, 310):
        message = safe("x" * length + "\n" + SECRET)
        assert re.fullmatch("(?!.*sk-).{1,300}", message)


def test_a_message_has_no_lone_surrogate():
    assert safe("cut \ud83d") == "cut \ufffd"


HARD_SECRET = 'sk-Planted/01+23"45\\67?&=end'


def disguised(secret: str, prefix: str = "user:") -> dict[str, str]:
    """The forms in which a secret may come back, also in base64 with text around it."""
    packed = base64.b64encode(f"{prefix}{secret}:x".encode()).decode()
    percent = urllib.parse.quote(secret, safe="")
    return {
        "literal": secret,
        "percent": percent,
        "percent in small letters": re.sub(
            "%..",
            lambda match: match[0].lower(),
            percent,
        ),
        "base64": packed,
        "base64 for addresses": packed.replace("+", "-").replace("/", "_"),
        "percent of base64": urllib.parse.quote(packed, safe=""),
        "json": json.dumps(secret)[1:-1],
        "json with escaped slashes": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "json in json": json.dumps(json.dumps({"key": secret})),
    }


def middle_of(text: str) -> str:
    return text[len(text) // 3 : -len(text) // 3]


@pytest.mark.parametrize(
    "secret",
    [SECRET, HARD_SECRET, HARD_SECRET + "ü"],
    ids=["plain", "hard", "not ascii"],
)
@pytest.mark.parametrize("form", disguised(SECRET))
@pytest.mark.parametrize("is_reply", [False, True])
# In base64 a secret has another form after each number of bytes modulo 3.
@pytest.mark.parametrize("prefix", ["", "u", "me", "user:"])
def test_a_secret_is_taken_out_in_every_form(
    prefix,
    is_reply,
    form,
    secret,
    monkeypatch,
):
    monkeypatch.setenv("SOME_API_KEY", secret)
    disguise = disguised(secret, prefix)[form]

    message = redacted(f"got {disguise} of you", is_reply=is_reply)

    assert "[redacted]" in message
    assert middle_of(disguise) not in message
    # The rest of a group of base64 may stay.
    assert len(message) < len("got [redacted] of you") + 20


@pytest.mark.parametrize(
    "text",
    [
        "the password of Jane Q. Public, Esq. of 20261122 is in https://user:pass@host",
        json.dumps({"a": "ü\n" * 50, "b": "100%25 of \\alpha", "c": "&#x41;"}),
    ],
    ids=["words", "escapes"],
)
def test_a_reply_keeps_ordinary_words_addresses_and_escapes(text, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "password")
    monkeypatch.setenv("A_KEY", "20261122")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Jane Q. Public, Esq.")
    monkeypatch.setenv("SOME_API_KEY", SECRET)

    assert redacted(text, is_reply=True) == text


ECHOES = list(itertools.product([200, 400, 401, 429, 500], ROUTES))


@pytest.mark.parametrize(
    ("echo", "form"),
    in_turn(ECHOES, ["literal", "base64", "json", "percent"]),
)
def test_a_key_that_a_provider_echoes_is_not_stored_in_any_form(
    echo,
    form,
    calling,
    serve,
    monkeypatch,
):
    status, route = echo
    monkeypatch.setenv("SOME_API_KEY", HARD_SECRET)
    disguise = disguised(HARD_SECRET)[form]
    http_response = failed(status, f"Bad key: {disguise}", X_Key=HARD_SECRET)
    if status == 200:
        http_response = HttpResponse(
            f"Your key is {disguise}.",
            model=f"m-{disguise}",
            fingerprint=f"fp {disguise}",
            headers={"X-Key": HARD_SECRET},
        )

    reply = calling(call_to(serve(http_response), **ROUTES[route]))

    assert "[redacted]" in str(reply.text or reply.error)
    for secret in disguised(HARD_SECRET).values():
        assert middle_of(secret) not in str(reply)
        assert traces(calling.folder, middle_of(secret)) == []


def gated_call(server: FaultServer, route: str) -> Call:
    """A call with a secret in its headers and parameters.

    The name of one of the parameters is not that of a secret.
    """
    settings = ROUTES[route]
    extra_body = {"auth": {"token": "${PRBENCH_GATE}"}, "note": "${PRBENCH_GATE}"}
    parameters = {**settings.get("parameters", {}), "extra_body": extra_body}
    headers = {"X-Gate": "Bearer ${PRBENCH_GATE}", "X-Team": "blue"}
    return call_to(
        server, **settings | {"headers": headers, "parameters": parameters}
    )


@pytest.mark.parametrize("route", ROUTES)
def test_secrets_reach_nothing_but_the_server(route, calling, serve, monkeypatch):
    monkeypatch.setenv("PRBENCH_GATE", SECRET)
    server = serve(HttpResponse("x"))

    reply = calling(gated_call(server, route))

    [entry] = server.entries
    assert reply.status == "ok"
    assert entry.headers["x-gate"] == f"Bearer {SECRET}"
    assert entry.headers["x-team"] == "blue"
    assert entry.request["auth"] == {"token": SECRET}
    assert entry.request["note"] == "${PRBENCH_GATE}"
    assert traces(calling.folder, SECRET) == []


@pytest.mark.parametrize("route", ROUTES)
def test_a_call_is_the_same_with_another_secret(route, calling, serve, monkeypatch):
    server = serve(HttpResponse("x"))
    for secret in (SECRET, "another-value"):
        monkeypatch.setenv("PRBENCH_GATE", secret)
        assert calling(gated_call(server, route)).status == "ok"

    assert len(server.book) == 1


def test_an_address_is_filled_in_at_the_call(calling, serve, monkeypatch):
    server = serve(
        lambda _request, _number: failed(500, f"no such place: {server.api_base}")
    )
    monkeypatch.setenv("PRBENCH_HOST", server.api_base.split("/")[2])

    reply = calling(call_to("http://${PRBENCH_HOST}/v1"))

    assert "127.0.0.1" not in str(reply.error)
    assert len(server.book) == 2  # an error 500 is tried again
    assert traces(calling.folder, "127.0.0.1") == []
