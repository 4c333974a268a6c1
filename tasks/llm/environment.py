"""Environment variables, with those of the `.env` file that LiteLLM reads when it is imported."""

import importlib.util
import os
from functools import cache
from pathlib import Path


def variable(name: str) -> str | None:
    """The value of an environment variable; None if it is not set."""
    if name not in os.environ:
        _read_env_file()
    return os.environ.get(name)


@cache
def _read_env_file() -> None:
    """Set the variables of LiteLLM's `.env` file now: keys are asked for before LiteLLM is imported."""
    file = env_file()
    if file is not None:
        from dotenv import dotenv_values  # LiteLLM brings it

        # Whether Prefect records a run must not depend on whether a key was asked for.
        given = {name: value for name, value in dotenv_values(file).items() if not name.startswith("PREFECT_")}
        for name, value in given.items():
            if value is not None:
                os.environ.setdefault(name, value)


def env_file() -> Path | None:
    """The file that LiteLLM reads: the nearest `.env` in the folders above its own; None if there is none."""
    found = importlib.util.find_spec("litellm")
    if os.environ.get("LITELLM_MODE", "DEV") != "DEV" or found is None or found.origin is None:
        return None
    files = (folder / ".env" for folder in Path(found.origin).parents)
    return next((file for file in files if file.is_file()), None)
