"""Which environment variable holds the key of a hosted provider, under the names that LiteLLM reads."""

from tasks.llm.environment import variable
from tasks.llm.request import Target
from tasks.rules.text.secrecy import REFERENCE, secrets_in

KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "xai": ("XAI_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "moonshot": ("MOONSHOT_API_KEY",),
}
"""By provider: the names of its key, of which one must be set; messages name the first."""
_OTHERS = {
    "bedrock": "AWS_ACCESS_KEY_ID", "sagemaker": "AWS_ACCESS_KEY_ID", "sagemaker_chat": "AWS_ACCESS_KEY_ID",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
}  # fmt: skip
"""Variables that are not named as usual, `PROVIDER_API_KEY`, of providers that may take their keys elsewhere."""


def set_key(provider: str) -> str | None:
    """The name under which a provider's key is set; None where none is, or the provider is not known."""
    return next((name for name in KEYS.get(provider, ()) if variable(name)), None)


def missing_key(target: Target) -> str | None:
    """The variable that has to be set before a model can be called; None where nothing is known to be missing."""
    provider = target.name.partition("/")[0]
    # The client behind `openai/` wants a key wherever it calls, and whatever headers it sends.
    has_own = "api_key" in str(target.parameters) or (provider != "openai" and bool(target.api_base or target.headers))
    if target.is_embedded or has_own or provider not in KEYS or set_key(provider):
        return None
    return KEYS[provider][0]


def key_state(target: Target) -> str:
    """Which variables the key of a model comes from, and whether they are set: `OPENAI_API_KEY is not set`."""
    provider, _, model = target.name.partition("/")
    names = _named(target)
    if not names and model:
        usual = _OTHERS.get(provider, f"{provider.upper()}_API_KEY")
        names = [set_key(provider) or KEYS.get(provider, (usual,))[0]]
    states = (f"{name} is {'not ' if variable(name) is None else ''}set" for name in names)
    return ", ".join(states) or "its provider's variable is unknown here"


def missing_variables(target: Target) -> list[str]:
    """The variables that have to be set where a model is called from and are not: its key, and what it refers to."""
    named = [*REFERENCE.findall(target.api_base or ""), *_named(target)]
    key = missing_key(target)
    return sorted({name for name in named if variable(name) is None} | ({key} if key else set()))


def _named(target: Target) -> list[str]:
    """The variables that headers and secret parameters refer to."""
    secrets = secrets_in({**target.parameters, **target.fallback})
    texts = [*target.headers.values(), *(str(secret) for _, secret in secrets)]
    return list(dict.fromkeys(name for text in texts for name in REFERENCE.findall(text)))
