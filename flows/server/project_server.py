"""The Prefect server that records runs: the one that is named, else the project's own, one for each data folder.

Prefect would start one by itself (its ephemeral server), which takes orders from any local user and any web page. The
own one is the process of `flows/server/server_process.py`, with a secret in a file of its user's Prefect home. Whoever
needs it first starts it. Its users share a lock for as long as they live, and it ends by itself some time after the
last of them. It gets its socket from here, so that its port is this user's from the beginning.
"""

import fcntl
import hashlib
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from flows.server.server_process import ADDRESS, FRESH_S, HOST, USERS
from tasks.config.job import Job
from tasks.console import notice
from tasks.rules.errors import UsageError
from warehouse.owner import this_machine

FOLDER = "prefect"
"""The folder in the folder of the data."""
OFF = "PRBENCH_PREFECT"
"""The variable of the environment that switches recording off, as `prefect: off` does."""
UNUSED_S = 120.0
"""How long a server stays after its last user, so that the next command finds it warm."""
START_S = 60.0
"""How long a server may take to start, or to come back."""
_LOOK_EVERY_S = 0.1


class NoServerError(UsageError):
    """Why the project's own server cannot be used."""


@dataclass(frozen=True)
class Server:
    """Where a server answers; of one's own also what it requires, and the file that has it."""

    url: str
    secret: str = field(default="", repr=False)
    secret_file: Path | None = None

    @property
    def place(self) -> str:
        """Host and port, without a password."""
        return place_of(self.url)

    def use(self) -> None:
        """Have Prefect, here and in the processes that are started from now on, talk to this server."""
        if self.secret:
            os.environ |= {"PREFECT_API_URL": self.url, "PREFECT_API_AUTH_STRING": self.secret}
            if "prefect.context" in sys.modules:
                sys.modules["prefect.context"].refresh_global_settings_context()

    def is_ready(self, within_s: float = START_S) -> bool:
        """Wait until it answers, and return whether it does."""
        until_s = time.monotonic() + within_s
        if not (is_well := self._answers()) and not self.secret:  # of one's own everybody knows that it has to start
            notice(f"Prefect's server at {self.place} does not answer; waiting up to {within_s:.0f} s for it")
        while not is_well and time.monotonic() < until_s:
            time.sleep(_LOOK_EVERY_S)
            is_well = self._answers()
        return is_well

    def _answers(self) -> bool:
        """Return whether it is there and well; its own clients will be told if it refuses them."""
        handlers = [urllib.request.ProxyHandler({})] if self.secret else []  # one's own is never behind a proxy
        try:
            with urllib.request.build_opener(*handlers).open(f"{self.url}/health", timeout=5):
                return True
        except urllib.error.HTTPError as error:
            return error.code in {401, 403}
        except (http.client.HTTPException, OSError):
            return False


_held: dict[Path, BinaryIO] = {}
"""The locks of this process as a user of servers, by their folder."""
_own_urls: set[str] = set()


def server_of(job: Job) -> Server | None:
    """The server that records a job's run, which may be starting still; None where nothing is to be recorded."""
    if job.settings.prefect == "off" or os.environ.get(OFF) == "off":
        return None
    if named := named_server():
        return Server(named)
    try:
        server = own_server(job)
    except (NoServerError, OSError) as error:
        notice(f"no Prefect server: {error}; this run is not recorded")
        return None
    server.use()
    return server


def named_server() -> str | None:
    """The API of the server that the environment or a profile of Prefect's names."""
    url = os.environ.get("PREFECT_API_URL")
    if url is None and may_name_a_server():  # importing Prefect takes 2 s
        from prefect.settings import get_current_settings

        url = get_current_settings().api.url
    return None if url in _own_urls else url


def own_server(job: Job, port: int = 0) -> Server:
    """The server of a data folder: the one that runs, else one that is started, on a port if one is given.

    This process is a user of it from now on.

    Raises:
        NoServerError: it is another user's or another machine's, or the port or the secret cannot be had.
    """
    folder = job.warehouse.resolve() / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise NoServerError(f"{folder} is another user's")
    if folder not in _held:
        users = (folder / USERS).open("a+b")
        fcntl.flock(users, fcntl.LOCK_SH)  # a server that is ending holds it alone, until it has ended
        _held[folder] = users
    until_s = time.monotonic() + START_S
    with (folder / "server.lock").open("a+b") as running:
        while True:
            try:
                fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if found := _running(folder):
                    return found
                if time.monotonic() > until_s:
                    raise NoServerError(f"{folder / ADDRESS} does not say where it is") from None
                time.sleep(_LOOK_EVERY_S)  # it is just being started
                continue
            _refuse_elsewhere(folder)
            return _started(job, folder, running, port)


def _running(folder: Path) -> Server | None:
    address = _read_address(folder)
    if not address:
        return None
    if address["machine"] != this_machine().kernel:
        raise NoServerError(f"that of this data folder runs on {address['host']}")
    with _secret_file(folder) as file:
        url, secret = address["url"], _read(file)
    if not secret:
        raise NoServerError(f"{secret_path(folder)} is gone; it is made again two minutes after the last run")
    _own_urls.add(url)
    return Server(url, secret, secret_path(folder))


def _refuse_elsewhere(folder: Path) -> None:
    """Refuse to start a second server on the database of one on another machine, where locks do not reach."""
    address = _read_address(folder)
    if address and address["machine"] != this_machine().kernel:
        os.utime(folder / "server.lock")  # by the clock of the file system
        age_s = (folder / "server.lock").stat().st_mtime - (folder / ADDRESS).stat().st_mtime
        if age_s < FRESH_S:
            raise NoServerError(f"that of this data folder runs on {address['host']}")


def _started(job: Job, folder: Path, running: BinaryIO, port: int) -> Server:
    try:
        listening = socket.create_server((HOST, port), backlog=2048)
    except OSError as error:
        raise NoServerError(
            f"--port {port}: {error.strerror}; choose another one, or set PREFECT_API_URL if a Prefect server of "
            "yours runs there"
        ) from error
    with listening, _secret_file(folder) as file:
        secret = _read(file) or _made(file)
        url = f"http://{HOST}:{listening.getsockname()[1]}/api"
        given = (listening.fileno(), file.fileno(), running.fileno())
        # -P: a folder in which the command happens to run is not looked at for modules.
        command = [sys.executable, "-P", "-m", "flows.server.server_process", *map(str, given), str(folder)]
        about = {"url": url, "machine": this_machine().kernel, "host": this_machine().host}
        (folder / ADDRESS).write_text(json.dumps(about), encoding="utf-8")
        subprocess.Popen(
            [*command, str(UNUSED_S)], env=os.environ | _retention(job), pass_fds=given, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            # In a session of its own: Ctrl-C in a terminal must not end it before those who talk to it.
            start_new_session=True,
        )  # fmt: skip
    _own_urls.add(url)
    return Server(url, secret, secret_path(folder))


def _retention(job: Job) -> dict[str, str]:
    """How long the server keeps finished runs."""
    days = job.settings.retention.prefect_days
    if days is None:
        return {}
    return {
        "PREFECT_SERVER_SERVICES_DB_VACUUM_ENABLED": "events,flow_runs",
        "PREFECT_SERVER_SERVICES_DB_VACUUM_RETENTION_PERIOD": f"P{days}D",
        "PREFECT_SERVER_EVENTS_RETENTION_PERIOD": f"P{min(days, 7)}D",
    }


def _read_address(folder: Path) -> dict[str, str]:
    """Return where the server of a folder is; nothing where the file is missing or damaged."""
    try:
        found = json.loads((folder / ADDRESS).read_text(encoding="utf-8"))
        return {name: str(found[name]) for name in ("url", "machine", "host")}
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return {}


def secret_path(folder: Path) -> Path:
    """Where the secret of the server of a folder is kept; it stays the same when that is started again."""
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    return home / "prbench" / f"server-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}.secret"


def _secret_file(folder: Path) -> BinaryIO:
    path = secret_path(folder)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # It never exists with another mode, and is no link to somebody else's file.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise NoServerError(f"{path} is a link or cannot be written ({error.strerror}); delete it") from error
    file = os.fdopen(descriptor, "r+b", buffering=0)
    for found in (path.parent.stat(), os.fstat(descriptor)):
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            file.close()
            raise NoServerError(f"{path}: other users can read this secret; delete {path.parent}")
    return file


def _read(file: BinaryIO) -> str:
    return os.pread(file.fileno(), 1024, 0).decode()


def _made(file: BinaryIO) -> str:
    secret = f"prbench:{secrets.token_urlsafe(32)}"
    os.pwrite(file.fileno(), secret.encode(), 0)
    os.fsync(file.fileno())
    return secret


def place_of(url: str) -> str:
    """Return host and port of an address, without a password."""
    return urlsplit(url).netloc.rpartition("@")[2]


# The files that Prefect reads settings from, found without importing Prefect, which takes 2 s

_SIGNS = {Path("prefect.toml"): ("api", "profiles_path", "home"), Path("pyproject.toml"): ("[tool.prefect",)}
"""What a file mentions that names a server, or names the file of profiles or its folder: a profile may name one."""
_OF_VARIABLES = ("prefect_api_url", "prefect_profiles_path")
"""The same in a file that sets variables; another `..._API_KEY` is no sign."""


def settings_files() -> list[Path]:
    """The files that are there and from which Prefect reads settings in this folder."""
    return [path for path in _possible_files() if path.is_file() and (path.name != "pyproject.toml" or _has_sign(path))]


def may_name_a_server() -> bool:
    """Whether one of the files could name a server."""
    return any(map(_has_sign, settings_files()))


def _possible_files() -> list[Path]:
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    return [profiles, Path(".env"), *_SIGNS]


def _has_sign(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace").lower()
    return any(sign in text for sign in _SIGNS.get(path, _OF_VARIABLES))


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
