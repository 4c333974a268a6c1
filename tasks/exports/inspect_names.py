"""Names of models as Inspect writes them: the provider first."""

from tasks.llm.providers import provider_by_litellm

_SAME = {
    "anthropic",
    "bedrock",
    "deepseek",
    "groq",
    "mistral",
    "ollama",
    "openai",
    "openai-api",
    "openrouter",
    "perplexity",
    "sambanova",
    "vllm",
}
"""Providers with the same name in LiteLLM and in Inspect."""
_RENAMED = {
    "azure": "openai/azure",
    "azure_ai": "azureai",
    "cloudflare": "cf",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "hosted_vllm": "vllm",
    "huggingface": "hf-inference-providers",
    "ollama_chat": "ollama",
    "together_ai": "together",
    "xai": "grok",
}
"""LiteLLM's name of a provider -> Inspect's."""
_ANY = "openai-api"
"""Inspect's prefix for a provider that it does not know."""
_CUSTOM = "custom"
"""Stands for the provider of a name that LiteLLM does not know. Converters of logs refuse the word
`unknown`.
"""
_IMPORTED = "imported"
"""Stands for the provider of a model of which only the label is known."""


def inspect_name(name: str) -> str:
    """Return LiteLLM's name of a model as Inspect writes it: `vllm/m` for `hosted_vllm/m`."""
    provider, slash, model = name.partition("/")
    if not slash:
        return inspect_name(f"{provider_by_litellm(name) or _CUSTOM}/{name}")
    if provider == "vertex_ai":
        developer = "anthropic" if model.startswith("claude") else "google"
        return f"{developer}/vertex/{model}"
    if provider in _SAME:
        return name
    return f"{_RENAMED.get(provider, f'{_ANY}/{provider}')}/{model}"


def name_of_label(label: str) -> str:
    """Return a name for a model of which only the label is known.

    Its provider is the label's, or `imported`.
    """
    return inspect_name(label if "/" in label else f"{_IMPORTED}/{label}")
