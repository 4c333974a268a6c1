"""Secrets: filled in only at the call, and in nothing that is stored."""

import base64
import itertools
import json
import re
import urllib.parse
from pathlib import Path

import pytest

from tasks.llm.environment import filled_in, redacted, safe
from tasks.rules.errors import UsageError
from tests.faults.server import HttpResponse
from tests.kit import Patch
from tests.tasks.llm.conftest import ROUTES, Calling, Serve, call_to, failed, in_turn

pytestmark = pytest.mark.usefixtures("hurried")

SECRET = "sk-planted-0123456789"


def traces(folder: Path, secret: str) -> list[str]:
    """The files below a folder that contain a secret."""
    return [
        path.name
        for path in folder.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize(
    "name", ["SOME_API_KEY", "HF_TOKEN", "CLIENT_SECRET", "DB_PASSWORD", "PROXY_AUTH"]
)
def test_a_value_whose_variable_is_named_like_a_secret_is_taken_out(
    name: str, monkeypatch: Patch
) -> None:
    monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("PRBENCH_PLACE", "somewhere-nice")
    monkeypatch.setenv("SHORT_TOKEN", "true")
    assert redacted(f"got {SECRET}, and '{SECRET}'") == "got [redacted], and '[redacted]'"
    assert redacted("somewhere-nice is true") == "somewhere-nice is true"


def test_a_value_that_the_configuration_names_is_taken_out_anyway(monkeypatch: Patch) -> None:
    monkeypatch.setenv("PRBENCH_TEAM", "blue")
    assert filled_in("team ${PRBENCH_TEAM}!") == "team blue!"
    assert redacted("the blue one") == "the [redacted] one"
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
def test_credentials_in_an_address_are_taken_out(url: str) -> None:
    shown = redacted(f"cannot reach {url} today")
    assert not any(secret in shown for secret in ("user", "pass", "word", "token"))
    assert "host" in shown


def test_a_secret_that_begins_with_another_is_taken_out_whole(monkeypatch: Patch) -> None:
    monkeypatch.setenv("A_KEY", "planted-01")
    monkeypatch.setenv("B_KEY", "planted-01-and-more")
    assert "more" not in redacted("it is planted-01-and-more")


def test_a_message_is_one_short_line_without_half_a_secret(monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    for length in range(270, 310):
        assert re.fullmatch("(?!.*sk-).{1,300}", safe("x" * length + "\n" + SECRET))
    assert safe("cut \ud83d") == "cut \ufffd"


HARD_SECRET = 'sk-Planted/01+23"45\\67?&=end'


def disguised(secret: str, before: str = "user:") -> dict[str, str]:
    """The forms in which a secret may come back, also in base64 with text around it."""
    packed = base64.b64encode(f"{before}{secret}:x".encode()).decode()
    percent = urllib.parse.quote(secret, safe="")
    return {
        "literal": secret,
        "percent": percent,
        "percent in small letters": re.sub("%..", lambda match: match[0].lower(), percent),
        "base64": packed,
        "base64 for addresses": packed.replace("+", "-").replace("/", "_"),
        "percent of base64": urllib.parse.quote(packed, safe=""),
        "json": json.dumps(secret)[1:-1],
        "json with escaped slashes": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "json in json": json.dumps(json.dumps({"key": secret})),
    }


@pytest.mark.parametrize(
    "secret", [SECRET, HARD_SECRET, HARD_SECRET + "ü"], ids=["plain", "hard", "not ascii"]
)
@pytest.mark.parametrize("form", disguised(SECRET))
def test_a_secret_is_taken_out_in_every_form(form: str, secret: str, monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOME_API_KEY", secret)
    for before in ("", "u", "me", "user:"):
        planted = disguised(secret, before)[form]
        for is_reply in (False, True):
            shown = redacted(f"got {planted} of you", is_reply=is_reply)
            assert "[redacted]" in shown
            assert planted[len(planted) // 3 : -len(planted) // 3] not in shown
            assert len(shown) < len("got [redacted] of you") + 20


def test_a_reply_keeps_ordinary_words_addresses_and_escapes(monkeypatch: Patch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "password")
    monkeypatch.setenv("A_KEY", "20261122")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Jane Q. Public, Esq.")
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    plain = "the password of Jane Q. Public, Esq. of 20261122 is in https://user:pass@host"
    with_escapes = json.dumps(
        {
            "a": "ü\n" * 50,
            "b": "100%25 of \\alpha",
            "c": "&#x41;",
        }
    )
    assert [plain, with_escapes] == [
        redacted(text, is_reply=True) for text in (plain, with_escapes)
    ]


ECHOES = list(itertools.product([200, 400, 401, 429, 500], ROUTES))


@pytest.mark.parametrize(
    ("echo", "form"), in_turn(ECHOES, ["literal", "base64", "json", "percent"])
)
def test_a_key_that_a_provider_echoes_is_not_stored_in_any_form(
    echo: tuple[int, str], form: str, calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    status, route = echo
    monkeypatch.setenv("SOME_API_KEY", HARD_SECRET)
    planted = disguised(HARD_SECRET)[form]
    names = {
        "model": f"m-{planted}",
        "fingerprint": f"fp {planted}",
        "headers": {"X-Key": HARD_SECRET},
    }
    good = HttpResponse(f"Your key is {planted}.", **names)
    error = f"Bad key: {planted}"
    sent = good if status == 200 else failed(status, error, X_Key=HARD_SECRET)
    reply = calling(call_to(serve(sent), **ROUTES[route]))
    assert "[redacted]" in str(reply.text or reply.error)
    for each in disguised(HARD_SECRET).values():
        middle = each[len(each) // 3 : -len(each) // 3]
        assert middle not in str(reply)
        assert not traces(calling.folder, middle)


@pytest.mark.parametrize("route", ROUTES)
def test_secrets_reach_the_server_alone(
    route: str, calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("PRBENCH_GATE", SECRET)
    server = serve(HttpResponse("x"))
    body = {"extra_body": {"auth": {"token": "${PRBENCH_GATE}"}, "note": "${PRBENCH_GATE}"}}
    parameters = {**ROUTES[route].get("parameters", {}), **body}
    headers = {"X-Gate": "Bearer ${PRBENCH_GATE}", "X-Team": "blue"}
    call = call_to(server, **ROUTES[route] | {"headers": headers, "parameters": parameters})
    assert calling(call).status == "ok"
    (entry,) = server.entries
    assert f"Bearer {SECRET}" == entry.headers["x-gate"]
    assert entry.headers["x-team"] == "blue"
    assert entry.request["auth"] == {"token": SECRET}
    assert entry.request["note"] == "${PRBENCH_GATE}"
    assert not traces(calling.folder, SECRET)
    monkeypatch.setenv("PRBENCH_GATE", "another-value")
    assert calling(call).status == "ok"
    assert len(server.book) == 1


def test_an_address_is_filled_in_at_the_call(
    calling: Calling, serve: Serve, monkeypatch: Patch
) -> None:
    server = serve(lambda _request, _number: failed(500, f"no such place: {server.api_base}"))
    monkeypatch.setenv("PRBENCH_HOST", server.api_base.split("/")[2])
    assert "127.0.0.1" not in str(calling(call_to("http://${PRBENCH_HOST}/v1")).error)
    assert len(server.book) == 2
    assert not traces(calling.folder, "127.0.0.1")
