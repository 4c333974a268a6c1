"""Names of models in Inspect logs."""

import pytest

from tasks.exports.inspect_names import inspect_name, name_or_label


@pytest.mark.parametrize(
    ("litellm_name", "name"),
    [
        ("openai/gpt-5.6-sol", "openai/gpt-5.6-sol"),
        ("gpt-4o", "openai/gpt-4o"),
        ("anthropic/claude-opus-5", "anthropic/claude-opus-5"),
        ("gemini/gemini-3-pro", "google/gemini-3-pro"),
        ("vertex_ai/gemini-3-pro", "google/vertex/gemini-3-pro"),
        ("vertex_ai/claude-opus-5", "anthropic/vertex/claude-opus-5"),
        ("xai/grok-5", "grok/grok-5"),
        ("hosted_vllm/org/small", "vllm/org/small"),
        ("together_ai/org/small", "together/org/small"),
        ("openrouter/org/small", "openrouter/org/small"),
        ("embedded/smollm2", "openai-api/embedded/smollm2"),
        ("a-model-that-nobody-has", "openai-api/custom/a-model-that-nobody-has"),
    ],
)
def test_a_model_has_the_name_that_inspect_gives_its_provider(litellm_name, name):
    assert inspect_name(litellm_name) == name


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("brief", "openai-api/imported/brief"),
        ("gpt-4o", "openai-api/imported/gpt-4o"),
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("org/small", "openai-api/org/small"),
    ],
)
def test_a_label_is_no_provider_s_name_unless_it_states_one(label, name):
    assert name_or_label(None, label) == name
