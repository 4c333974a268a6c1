"""Addresses of the environment: resolved before identity, called as they were resolved, never one
for another.
"""

import asyncio
import json
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest

from tasks.config.models import Model
from tasks.llm.calls.sending import send
from tasks.llm.litellm_setup import litellm
from tasks.llm.providers import address_variables
from tasks.llm.request import Call
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import model_hash, target_of
from tests.faults.anything import AnyServer, Plain
from tests.faults.server import FaultServer
from tests.kit import job_on, judged, prepared, sampled, values_in

ADDRESS = "http://10.0.0.7:8000/v1"
pytestmark = pytest.mark.usefixtures("without_scores", "without_addresses")


@pytest.fixture
def servers() -> Iterator[tuple[FaultServer, FaultServer]]:
    with FaultServer() as server, FaultServer() as other_server:
        yield server, other_server


def test_replies_of_one_server_are_not_reused_for_another(
    tmp_path,
    monkeypatch,
    servers,
):
    server, other_server = servers
    models = [{"name": "openai/m", "label": "m"}]
    judges = [{"name": "openai/judge", "label": "judge"}]
    configured = job_on("sample", tmp_path, models=models, judges=judges)
    job = prepared(configured.model_copy(update={"limit": 2}))

    for named_server in (server, other_server, server):
        monkeypatch.setenv("OPENAI_BASE_URL", named_server.api_base)
        sampled(job)
        judged(job)

    assert len(server.samples) == 2
    assert len(other_server.samples) == 2
    assert len(other_server.judge_requests) == len(server.judge_requests) > 0
    hashes = values_in(job, "select distinct model_config_hash from responses")
    assert len(hashes) == 2


@pytest.mark.parametrize(
    "address",
    [
        ADDRESS,
        f"{ADDRESS}/",
        ADDRESS.replace("http", "HTTP"),
        "https://Host.example/V1",
    ],
)
def test_an_address_of_the_environment_is_identity_as_if_it_were_configured(
    address,
    monkeypatch,
):
    configured = model_hash(Model(name="openai/m", api_base=address))
    monkeypatch.setenv("OPENAI_BASE_URL", address)

    assert model_hash(Model(name="openai/m")) == configured


def test_an_address_of_the_environment_changes_nothing_for_a_configured_one(
    monkeypatch,
):
    configured = Model(name="openai/m", api_base="http://localhost:1/v1")
    config_hash = model_hash(configured)
    monkeypatch.setenv("OPENAI_BASE_URL", ADDRESS)

    assert model_hash(configured) == config_hash


def test_a_name_without_a_provider_has_the_address_of_its_provider(monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", ADDRESS)

    assert target_of(Model(name="gpt-4o")).api_base == ADDRESS
    assert target_of(Model(name="claude-sonnet-4-5")).api_base is None


def test_an_empty_variable_is_no_address(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    monkeypatch.setenv("OPENAI_API_BASE", ADDRESS)

    assert target_of(Model(name="openai/m")).address_variable == "OPENAI_API_BASE"


@pytest.mark.parametrize(
    "address",
    [
        " ",
        "\t",
        "localhost:8000/v1",
        "gateway.example",
        "//host/v1",
        "ftp://host/v1",
        "https://",
        "http:///v1",
        "http://:8000/v1",
        "http://host:port/v1",
        "http://host:99999/v1",
        "http://my host/v1",
        "http://host/v1\n",
    ],
)
def test_an_address_that_no_request_can_use_is_refused_with_its_variable(
    address,
    monkeypatch,
):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_BASE", ADDRESS)

    with pytest.raises(
        UsageError,
        match=r"\AOPENAI_BASE_URL cannot be used \([^\n]+\); correct or unset it\Z",
    ):
        target_of(Model(name="openai/m"))


def test_the_embedded_model_has_no_address_of_the_environment(monkeypatch):
    monkeypatch.setenv("EMBEDDED_API_BASE", ADDRESS)

    assert target_of(Model(name="embedded/smollm2-135m-instruct")).api_base is None


@pytest.mark.parametrize(
    "address",
    ["https://user:hidden-0011@host/v1", "https://host/v1?api_key=hidden-0011"],
)
def test_a_secret_in_an_address_of_the_environment_is_refused_as_in_a_configured_one(
    address,
    monkeypatch,
):
    monkeypatch.setenv("OPENAI_BASE_URL", address)

    with pytest.raises(UsageError, match="OPENAI_BASE_URL") as refusal:
        target_of(Model(name="openai/m"))
    assert "hidden-0011" not in str(refusal.value)


NOT_OF_MODELS = frozenset(
    {
        # search
        "APISERPENT_API_BASE",
        "BRAVE_API_BASE",
        "CRW_API_BASE",
        "DATAFORSEO_API_BASE",
        "DUCKDUCKGO_API_BASE",
        "EXA_API_BASE",
        "FIRECRAWL_API_BASE",
        "GOOGLE_PSE_API_BASE",
        "LINKUP_API_BASE",
        "NIMBLE_API_BASE",
        "SEARCHAPI_API_BASE",
        "SEARXNG_API_BASE",
        "SERPER_API_BASE",
        "TAVILY_API_BASE",
        "TINYFISH_API_BASE",
        "YOUCOM_API_BASE",
        # pictures, logs
        "BFL_API_BASE",
        "COMETAPI_BASE_URL",
        "FAL_AI_QUEUE_API_BASE",
        "LOGFIRE_BASE_URL",
        # logins in a browser
        "OPENAI_CHATGPT_API_BASE",
        "XAI_OAUTH_API_BASE",
        # the API for messages of LiteLLM's proxy, and a route of bedrock/ to Anthropic's own
        # platform
        "ANTHROPIC_AWS_API_BASE",
        "ANTHROPIC_AWS_BASE_URL",
        "DEEPSEEK_ANTHROPIC_API_BASE",
        "TENCENT_ANTHROPIC_API_BASE",
        # a provider that is gone, and a constant
        "ALEPH_ALPHA_API_BASE",
        "DEFAULT_API_BASE",
    }
)
"""Addresses that LiteLLM reads from the environment for other purposes than calls of models by the
pipeline.
"""


def names_in_litellm() -> set[str]:
    folder = Path(litellm().__file__).parent
    sources = [folder / "main.py", *folder.glob("litellm_core_utils/*.py")]
    sources += [*folder.glob("llms/**/*.py"), *folder.glob("llms/**/*.json")]
    texts = "\n".join(source.read_text(encoding="utf-8") for source in sources)
    return set(
        re.findall(r"[\"']([A-Z][A-Z0-9_]*_(?:API_BASE|BASE_URL))[\"']", texts)
    )


def providers() -> set[str]:
    file = Path(litellm().__file__).parent / "llms/openai_like/providers.json"
    return {
        *(str(provider.value) for provider in litellm().provider_list),
        *litellm().openai_compatible_providers,
        *json.loads(file.read_text(encoding="utf-8")),
    }


def names_of_providers() -> set[str]:
    """The variables from which the pipeline takes addresses."""
    return set(chain.from_iterable(map(address_variables, providers())))


def test_every_address_that_litellm_reads_from_the_environment_belongs_to_a_provider():
    assert names_in_litellm() - names_of_providers() - NOT_OF_MODELS == set()


NOT_CALLED = {
    "aiohttp_openai",
    "chatgpt",
    "github_copilot",
    "claude_code",
    "microsoft_365_copilot",
}
"""Refused by the configuration, or with a login in a browser."""
USUAL = (
    "anthropic",
    "azure",
    "deepseek",
    "fireworks_ai",
    "gemini",
    "groq",
    "hosted_vllm",
    "mistral",
    "openai",
    "openrouter",
    "together_ai",
    "vertex_ai",
    "xai",
)
OWN = {"azure", "baseten", "huggingface", "xinference"}
"""LiteLLM uses the variable of these in another way, or not for every chat; a configured address is
used as ours is.
"""


class CalledPaths(NamedTuple):
    """The paths of the server that calls of a provider's model went to; empty without a request.

    Each variable with an address has a path of its own.
    """

    provider: str
    variable: str | None
    path: str
    path_of_litellm: str


@pytest.fixture
def address_server(monkeypatch) -> Iterator[AnyServer]:
    """A server that refuses calls, at the addresses in all variables; no other can be reached."""
    resolve = socket.getaddrinfo

    def resolve_here(host, *arguments, **options):
        if host not in {"127.0.0.1", "localhost", b"127.0.0.1"}:
            raise socket.gaierror(-2, "not from a test")
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_here)
    refusal = Plain(
        400,
        {"content-type": "application/json"},
        lambda: [b'{"error": {"message": "no", "code": 400}}'],
    )
    with AnyServer(refusal) as server:
        for name in names_in_litellm() | names_of_providers():
            monkeypatch.setenv(name, f"{server.address}/{name}")
        yield server


async def called_paths(
    server: AnyServer,
    called_providers: Sequence[str],
    monkeypatch,
) -> list[CalledPaths]:
    """Call a model of each provider, by the pipeline and by LiteLLM alone."""

    async def path_of(target):
        server.seen.clear()
        await send(Call(target, [{"role": "user", "content": "Hi"}], ""), {})
        return server.seen[-1].path if server.seen else ""

    paths = []
    for provider in called_providers:
        monkeypatch.setenv(f"{provider.upper()}_API_KEY", "none")
        target = target_of(Model(name=f"{provider}/m", timeout_s=6))
        paths.append(
            CalledPaths(
                provider,
                target.address_variable,
                path_of_litellm=await path_of(replace(target, api_base=None)),
                path=await path_of(target),
            )
        )
    return paths


ALL_REACHED = 89
"""The number of all providers whose address LiteLLM takes from the environment, or more."""


@pytest.mark.parametrize(
    ("called_providers", "least_reached"),
    [
        (USUAL, len(USUAL) - 1),
        pytest.param(None, ALL_REACHED, marks=pytest.mark.slow, id="all"),
    ],
)
def test_a_model_is_called_where_litellm_alone_would_call_it(
    called_providers,
    least_reached,
    address_server,
    monkeypatch,
):
    all_providers = sorted(providers() - NOT_CALLED - OWN)

    paths = asyncio.run(
        called_paths(address_server, called_providers or all_providers, monkeypatch),
    )

    # LiteLLM takes some providers' addresses from nowhere; ours is then the variable that is named
    # like all others.
    paths_in_litellm = [call for call in paths if call.path_of_litellm]
    assert len(paths_in_litellm) >= least_reached
    for call in paths_in_litellm:
        assert call.path == call.path_of_litellm, call
    for call in paths:
        assert not call.path or call.path.startswith(f"/{call.variable}"), call
