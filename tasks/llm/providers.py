"""The variables of the environment that hold the addresses and keys of providers."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tasks.llm.litellm_setup import litellm
from tasks.llm.request import Target
from tasks.llm.variables import read_env_file, refuse_unusable_address, variable
from tasks.rules.text.secrecy import REFERENCE, is_secret_name, secrets_in

_OPENAI = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_ANTHROPIC = ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL")
_VERTEX = ("VERTEXAI_API_BASE", "VERTEX_API_BASE")
_WATSONX = ("WATSONX_API_BASE", "WATSONX_URL", "WX_URL", "WML_URL")
_ADDRESSES: Mapping[str, tuple[str, ...]] = {
    "ai21": _OPENAI,
    "ai21_chat": ("AI21_API_BASE",),
    "anthropic": _ANTHROPIC,
    "anthropic_text": _ANTHROPIC,
    "azure_ai": ("AZURE_AI_API_BASE",),
    "azure_text": ("AZURE_API_BASE",),
    "bedrock": ("AWS_BEDROCK_RUNTIME_ENDPOINT",),
    "cohere_chat": ("COHERE_API_BASE",),
    "custom_openai": _OPENAI,
    "databricks_agent": ("DATABRICKS_API_BASE",),
    "datarobot": ("DATAROBOT_ENDPOINT",),
    "featherless_ai": ("FEATHERLESS_AI_API_BASE", "FEATHERLESS_API_BASE"),
    "fireworks_ai": ("FIREWORKS_API_BASE",),
    "friendliai": ("FRIENDLI_API_BASE",),
    "gradient_ai": ("GRADIENT_AI_AGENT_ENDPOINT",),
    "huggingface": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
    "lambda_ai": ("LAMBDA_API_BASE",),
    "litellm_proxy": ("LITELLM_PROXY_API_BASE", *_OPENAI),
    "lm_studio": ("LM_STUDIO_API_BASE", *_OPENAI),
    "meta_llama": ("LLAMA_API_BASE",),
    "mistral": ("MISTRAL_AZURE_API_BASE", "MISTRAL_API_BASE"),
    "nace": ("NACE_API_BASE", "NACE_BASE_URL"),
    "ollama_chat": ("OLLAMA_API_BASE",),
    "openai": _OPENAI,
    "scx-ai": ("SCX_API_BASE",),
    "tensormesh": ("TENSORMESH_SERVERLESS_BASE_URL",),
    "text-completion-inception": ("INCEPTION_API_BASE",),
    "text-completion-openai": _OPENAI,
    "vertex_ai": _VERTEX,
    "vertex_ai_beta": _VERTEX,
    "volcengine": ("VOLCENGINE_API_BASE", "ARK_API_BASE"),
    "watsonx": _WATSONX,
    "watsonx_text": _WATSONX,
    "xinference": ("XINFERENCE_API_BASE", *_OPENAI),
}
"""Provider -> the variables from which LiteLLM takes its address, in LiteLLM's order, if not
`PROVIDER_API_BASE`.
"""


def address_variables(provider: str) -> tuple[str, ...]:
    """Return the variables that may hold the address of a provider, the first one that counts
    first.
    """
    return _ADDRESSES.get(provider, (f"{provider.upper().replace('-', '_')}_API_BASE",))


class EnvironmentAddress(NamedTuple):
    """An address from the environment, and the name of the variable that holds it."""

    variable: str
    address: str


def address_of(name: str, parameters: Mapping[str, Any]) -> EnvironmentAddress | None:
    """Return the address that the environment gives a model without a configured one; None if it
    gives none.

    LiteLLM would read the same variables, but during the call, when the call's identity is already
    fixed. To LiteLLM an empty variable is not set, but a blank one is.

    Raises:
        UsageError: no request can use the address.
    """
    provider = parameters.get("custom_llm_provider") or _provider_of(name)
    if provider:
        for variable_name in address_variables(provider):
            address = variable(variable_name)
            if address:
                refuse_unusable_address(variable_name, address)
                return EnvironmentAddress(variable_name, address)
    return None


def _provider_of(name: str) -> str | None:
    """Return the provider of a model; None if its name does not say it and no address is set
    anyway.
    """
    provider, slash, _ = name.partition("/")
    if slash:
        return provider
    read_env_file()
    for variable_name in os.environ:
        is_usual = variable_name.endswith("_API_BASE")
        if is_usual or any(variable_name in names for names in _ADDRESSES.values()):
            return provider_by_litellm(name)
    return None  # without LiteLLM, whose import takes seconds


def provider_by_litellm(name: str) -> str | None:
    """Return the provider that LiteLLM calls for a name without one; None if it knows none.

    LiteLLM's import takes seconds.
    """
    try:
        return str(litellm().get_llm_provider(name)[1])
    except Exception:  # noqa: BLE001 - LiteLLM does not know the name, and its call will say so
        return None


KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "xai": ("XAI_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "together_ai": (
        "TOGETHERAI_API_KEY",
        "TOGETHER_API_KEY",
        "TOGETHER_AI_API_KEY",
        "TOGETHER_AI_TOKEN",
    ),
    "fireworks_ai": (
        "FIREWORKS_AI_API_KEY",
        "FIREWORKS_API_KEY",
        "FIREWORKSAI_API_KEY",
        "FIREWORKS_AI_TOKEN",
    ),
    "moonshot": ("MOONSHOT_API_KEY",),
}
"""Provider -> the names of its key; one of them must be set, and messages name the first."""
_OTHER_KEYS = {
    "bedrock": "AWS_ACCESS_KEY_ID",
    "sagemaker": "AWS_ACCESS_KEY_ID",
    "sagemaker_chat": "AWS_ACCESS_KEY_ID",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}
"""Provider -> its variable, if not named `PROVIDER_API_KEY` as usual; these providers may get their
keys elsewhere.
"""


_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
"""Headers that replace the provider's key; any other one is sent beside it."""


def key_state(target: Target) -> str:
    """Return the variables with a model's credentials, and whether each is set.

    They are the provider's key, unless the configuration replaces it, and those that headers,
    secret parameters and the address refer to. For example: `OPENAI_API_KEY is set, TEAM_TOKEN is
    not set`. An empty variable is not set.
    """
    provider, _, model = target.name.partition("/")
    names = _referenced_variables(target)
    replaces_key = _has_own_key(target) or any(
        name.lower() in _KEY_HEADERS for name in target.headers
    )
    if model and not replaces_key:
        names.insert(0, _key_variable(provider))
    states = [f"{name} is {'' if variable(name) else 'not '}set" for name in names]
    return ", ".join(states) or "its provider's variable is unknown here"


def _key_variable(provider: str) -> str:
    """Return the variable with a provider's key: one that is set, or the usual one."""
    if provider in KEYS:
        return _defined_key_variable(provider) or KEYS[provider][0]
    return _OTHER_KEYS.get(provider, f"{provider.upper()}_API_KEY")


def missing_variables(target: Target) -> list[str]:
    """Return the variables that must be set on the machine that calls a model, but are not.

    They are the model's key, if its name is known, and the variables that its settings refer to. An
    empty variable is not set.
    """
    names = [*REFERENCE.findall(target.api_base or ""), *_referenced_variables(target)]
    missing_names = {name for name in names if not variable(name)}
    provider = target.name.partition("/")[0]
    # The client of `openai/` needs a key for every address, whatever headers it sends.
    needs_key = provider == "openai" or not (target.api_base or target.headers)
    has_key = _has_own_key(target) or _defined_key_variable(provider) is not None
    if needs_key and not has_key and provider in KEYS:
        missing_names.add(KEYS[provider][0])
    return sorted(missing_names)


def _has_own_key(target: Target) -> bool:
    return any("api_key" in path for path, _ in secrets_in(target.parameters))


def _defined_key_variable(provider: str) -> str | None:
    """Return the name of the variable with a provider's key; None if none is set, or the provider
    is not known.
    """
    return next((name for name in KEYS.get(provider, ()) if variable(name)), None)


def _referenced_variables(target: Target) -> list[str]:
    """Return the variables that headers, secret parameters and secrets in the address refer to."""
    texts = list(target.headers.values())
    texts += [str(secret) for _, secret in secrets_in({**target.parameters, **target.fallback})]
    query = urlsplit(target.api_base or "").query
    texts += [value for key, value in parse_qsl(query) if is_secret_name(key)]
    return list(dict.fromkeys(REFERENCE.findall(" ".join(texts))))
