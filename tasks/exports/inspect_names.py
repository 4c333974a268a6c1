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


def inspect_name(name: str) -> str:
    """Return LiteLLM's name of a model as Inspect writes it: `vllm/m` for `hosted_vllm/m`."""
    provider, slash, model = name.partition("/")
    if not slash:
        # Converters of logs refuse the word `unknown` as a provider.
        return inspect_name(f"{provider_by_litellm(name) or 'custom'}/{name}")
    if provider == "vertex_ai":
        developer = "anthropic" if model.startswith("claude") else "google"
        return f"{developer}/vertex/{model}"
    if provider in _SAME:
        return name
    # `openai-api` is Inspect's prefix for a provider that it does not know.
    return f"{_RENAMED.get(provider, f'openai-api/{provider}')}/{model}"


def name_or_label(litellm_name: str | None, label: str) -> str:
    """Return a model's name in Inspect, made from its label if its name is not known.

    The provider of a label without one is `imported`.
    """
    return inspect_name(litellm_name or (label if "/" in label else f"imported/{label}"))
