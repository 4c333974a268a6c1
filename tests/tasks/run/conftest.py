"""An environment without addresses of models."""

import os

import pytest


@pytest.fixture
def without_addresses(monkeypatch):
    """Unset every address of models in the environment, and set a key."""
    for name in list(os.environ):
        if name.endswith(("_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
