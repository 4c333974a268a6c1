"""Variables of the environment: what a refusal names, certificates, and proxies."""

import os
import subprocess
import sys
from typing import Any

import certifi
import pytest

from tasks.llm.providers import key_state
from tasks.llm.request import Target
from tasks.llm.variables import refuse_unusable_network
from tasks.rules.errors import UsageError
from tests.faults.server import FaultServer
from tests.tasks.llm.conftest import in_turn

NAMED_VARIABLES: dict[str, tuple[dict[str, Any], str]] = {
    "only the key": ({}, "OPENAI_API_KEY is set"),
    "a header beside the key": (
        {"headers": {"X-Team-Token": "${TEAM_TOKEN}"}},
        "OPENAI_API_KEY is set, TEAM_TOKEN is not set",
    ),
    "any other header": (
        {"headers": {"cf-aig-run": "${GATEWAY}"}},
        "OPENAI_API_KEY is set, GATEWAY is not set",
    ),
    "a header instead of the key": (
        {"headers": {"Authorization": "Bearer ${TEAM_TOKEN}"}},
        "TEAM_TOKEN is not set",
    ),
    "a key of its own and a header": (
        {
            "parameters": {"api_key": "${OWN_KEY}"},
            "headers": {"X-Team": "${TEAM_TOKEN}"},
        },
        "TEAM_TOKEN is not set, OWN_KEY is not set",
    ),
    "a key in the address": (
        {"api_base": "https://gateway/v1?subscription-key=${TEAM_TOKEN}"},
        "OPENAI_API_KEY is set, TEAM_TOKEN is not set",
    ),
    "an address without a key": (
        {"api_base": "https://${HOST}/v1"},
        "OPENAI_API_KEY is set",
    ),
}
"""Case -> settings of a target, and what the refusal says of the variables."""


@pytest.mark.parametrize("case", NAMED_VARIABLES)
def test_a_refusal_names_every_variable_that_may_be_refused(case, monkeypatch):
    settings, variables = NAMED_VARIABLES[case]
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OWN_KEY", "")

    assert key_state(Target("openai/m", **settings)) == variables


@pytest.mark.parametrize(
    "name",
    ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"],
)
def test_certificates_that_do_not_exist_are_refused_with_the_variable(
    name,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv(name, str(tmp_path / "none.pem"))

    message = rf"\A{name} is \S+/none.pem, .* not exist\); correct or unset it\Z"
    with pytest.raises(UsageError, match=message):
        refuse_unusable_network()


def test_a_file_without_certificates_is_refused_with_the_variable(
    tmp_path,
    monkeypatch,
):
    file = tmp_path / "empty.pem"
    file.write_text("nothing")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    with pytest.raises(UsageError, match="SSL_CERT_FILE"):
        refuse_unusable_network()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSL_CERT_FILE", certifi.where()),
        ("SSL_CERT_DIR", "{folder}"),
        ("SSL_CERT_DIR", "{folder}/none:{folder}"),
        ("REQUESTS_CA_BUNDLE", "{folder}"),
        ("CURL_CA_BUNDLE", "{folder}"),
    ],
)
def test_certificates_that_can_be_read_are_accepted(
    name, value, tmp_path, monkeypatch
):
    monkeypatch.setenv(name, value.format(folder=tmp_path))

    refuse_unusable_network()


@pytest.mark.parametrize(
    ("name", "value", "cause"),
    [
        ("SSL_CERT_FILE", "{folder}", "it is a folder"),
        ("SSL_CERT_DIR", certifi.where(), "it is no folder"),
    ],
)
def test_a_folder_in_place_of_a_file_or_a_file_in_place_of_a_folder_is_refused(
    name,
    value,
    cause,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv(name, value.format(folder=tmp_path))

    message = rf"\A{name} is \S+, .*\({cause}\); correct or unset it\Z"
    with pytest.raises(UsageError, match=message):
        refuse_unusable_network()


def output_of(
    script: str,
    *arguments: str,
    environment: dict[str, str],
) -> subprocess.CompletedProcess[str]:
    """What a script prints in an environment."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_litellm_names_the_variable_if_it_cannot_be_imported(tmp_path):
    process = output_of(
        "from tasks.llm.litellm_setup import litellm; litellm()",
        environment={**os.environ, "SSL_CERT_FILE": str(tmp_path)},
    )

    error = f"SSL_CERT_FILE is {tmp_path}, which cannot be used (it is a folder)"
    assert f"UsageError: {error}" in process.stderr


PROXIES = (
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
)


UNUSABLE = [
    "socks://user:hidden-0011@127.0.0.1:7890/",
    "socks4://127.0.0.1:7890",
    "ftp://proxy:1",
    "://proxy:1",
    "not a url",
    " ",
    "http://proxy:1\n",
    "http://",
    "http://:8080",
    "http://proxy:99999",
    "user:hidden-0011/x@proxy:1",
    "http://[::1",
]
USABLE = [
    "",
    "http://proxy:8080",
    "HTTPS://user:p%40ss@proxy",
    "proxy.example:3128",
    "http://[::1]:8080/",
]


@pytest.mark.parametrize(("address", "name"), in_turn(UNUSABLE, PROXIES))
def test_a_proxy_that_no_library_can_use_is_refused_with_the_variable(
    name,
    address,
    monkeypatch,
):
    monkeypatch.setenv(name, address)

    message = rf"\A{name} cannot be used \([^\n]+\); correct or unset it\Z"
    with pytest.raises(UsageError, match=message) as refusal:
        refuse_unusable_network()

    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize(("address", "name"), in_turn(USABLE, PROXIES))
def test_a_proxy_that_can_be_used_is_accepted(name, address, monkeypatch):
    monkeypatch.setenv(name, address)

    refuse_unusable_network()


def test_a_socks_proxy_is_refused_without_its_library(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:7890")

    with pytest.raises(UsageError, match=r"ALL_PROXY cannot be used \(.*socksio"):
        refuse_unusable_network()


def test_a_socks_proxy_is_accepted_with_its_library(tmp_path, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:7890")
    (tmp_path / "socksio.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)

    refuse_unusable_network()


CALL = """
import asyncio, httpx, requests, sys
from tasks.llm.calls.sending import send
from tasks.llm.request import Call, Target
for address in sys.argv[1:]:
    for name in ("openai/m", "hosted_vllm/m"):
        target = Target(name, address, timeout_s=20)
        print(asyncio.run(send(Call(target, [{"role": "user", "content": "Hi"}], ""), {})).status)
    print(httpx.get(address).status_code, requests.get(address).status_code)
"""


def test_requests_to_this_machine_go_through_no_proxy():
    names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY")
    proxies = dict.fromkeys(names, "http://127.0.0.1:9")
    settings = {"NO_PROXY": "intranet.example", "OPENAI_API_KEY": "none"}

    with FaultServer() as server:
        process = output_of(
            CALL,
            server.api_base,
            server.api_base.replace("127.0.0.1", "localhost"),
            environment={
                **os.environ,
                **proxies,
                **settings,
            },
        )

    assert process.stdout.split() == 2 * ["ok", "ok", "404", "404"], process.stderr


def environment_without(ending: str) -> dict[str, str]:
    """The environment without the variables whose name has this ending."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith(ending)
    }


@pytest.mark.parametrize(
    ("name", "addresses"),
    [("NO_PROXY", "a.example, b.example"), ("no_proxy", "a.example,b.example")],
)
def test_addresses_that_users_exempt_from_proxies_stay_exempt(name, addresses):
    process = output_of(
        "import os, tasks; print(os.environ['NO_PROXY'], os.environ['no_proxy'])",
        environment={**environment_without("no_proxy"), name: addresses},
    )

    exempt = "a.example,b.example,localhost,127.0.0.1,0.0.0.0,::1"
    assert process.stdout.split() == [exempt, exempt]


def test_without_proxies_the_environment_stays_as_it_is():
    process = output_of(
        "import os; before = dict(os.environ); import tasks; print(before == os.environ)",
        environment=environment_without("_proxy"),
    )

    assert process.stdout.strip() == "True"
