"""Does the Prefect server that is configured ask for a secret? Whoever may talk to one can have it run commands."""

import json
import os
import subprocess
import sys
from base64 import b64encode

from flows.server.project_server import place_of, settings_files
from tasks.rules.errors import UsageError

_ANSWER_S = 10.0
_REFUSALS = (401, 403)
_NONE = "PREFECT_API_URL is not set, so runs are recorded by a server of this data folder, which asks for a secret"
_OPEN = (
    "{where} asks for no secret: anyone who reaches it, even a web page, can make it run commands; start it with "
    "PREFECT_SERVER_API_AUTH_STRING, and set PREFECT_API_AUTH_STRING here"
)
_READ = """
import json
from prefect.settings import get_current_settings
api = get_current_settings().api
auth, key = (secret and secret.get_secret_value() for secret in (api.auth_string, api.key))
print(json.dumps({"url": api.url, "auth": auth, "key": key}))
"""


def check_server() -> tuple[bool | None, str]:
    """Whether it is well guarded and reachable ((None: unknown)), and what to say about it."""
    try:
        settings = _settings()
    except UsageError as error:
        return False, str(error)
    url = (settings["url"] or "").rstrip("/")
    if url:
        return _asked(url, _secret(settings))
    return True, _NONE


def _asked(url: str, secret: dict[str, str]) -> tuple[bool | None, str]:
    import httpx

    where = place_of(url)
    try:
        with httpx.Client(timeout=_ANSWER_S) as client:
            anybody = client.get(f"{url}/admin/version").status_code
            with_secret = client.get(f"{url}/admin/version", headers=secret).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return False, f"{where} cannot be reached ({type(error).__name__}); start it, or correct PREFECT_API_URL"
    if anybody == httpx.codes.OK:
        return False, _OPEN.format(where=where)
    if anybody not in _REFUSALS:
        return None, f"{where} answers {anybody}; PREFECT_API_URL may not lead to a Prefect server"
    if with_secret in _REFUSALS:
        return False, f"{where} asks for a secret, and PREFECT_API_AUTH_STRING is a different one; set it"
    return True, f"{where} asks for a secret"


def _secret(settings: dict[str, str | None]) -> dict[str, str]:
    """The header with which Prefect's clients send their secret."""
    if auth := settings["auth"]:
        return {"Authorization": f"Basic {b64encode(auth.encode()).decode()}"}
    return {"Authorization": f"Bearer {settings['key']}"} if settings["key"] else {}


def _settings() -> dict[str, str | None]:
    """What Prefect reads. Only where it has files is it asked itself, which takes 2 s."""
    files = settings_files()
    if not files:
        names = {"url": "PREFECT_API_URL", "auth": "PREFECT_API_AUTH_STRING", "key": "PREFECT_API_KEY"}
        return {key: os.environ.get(name) for key, name in names.items()}
    answer = subprocess.run([sys.executable, "-P", "-c", _READ], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise UsageError(f"Prefect cannot read its settings; correct {' or '.join(map(str, files))}")
    settings: dict[str, str | None] = json.loads(answer.stdout.splitlines()[-1])
    return settings
