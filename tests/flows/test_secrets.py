"""A planted key cannot be found anywhere: in nothing that is stored, logged or printed, at any
level.
"""

import base64
import json
import os
import re
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.flows.conftest import PRBENCH
from tests.flows.prefect_server import take_database
from tests.kit import configure, endpoint, shared_folder, values_in

pytestmark = pytest.mark.slow

KEY = "sk-planted-0011223344556677"
HEADER = "header-planted-8899aabbccdd"
URL_PASSWORD = "url-planted-eeff00112233"
FORMS = [
    base64.b64encode(f"user:{KEY}".encode()).decode(),
    quote(f"key={KEY}", safe=""),
    json.dumps({"key": KEY}),
]
"""Other forms in which providers may repeat the key."""
PLANTED = [KEY, HEADER, URL_PASSWORD, *FORMS]
SERVER_SECRET = re.compile(rb"prbench:[\w-]{43}|cHJiZW5jaD[\w+/]{20,}")
"""The secret of the run's own Prefect server, plain and as in a header."""


def echo_secrets(request, number: int) -> HttpResponse:
    """Repeat the secrets in errors and texts, as careless providers do."""
    keys = " ".join([KEY, *FORMS])
    if is_judge_request(request) and number == 0:
        error = {
            "message": f"no: {keys} {HEADER} https://user:{URL_PASSWORD}@proxy.example",
            "type": "x",
            "code": None,
        }
        is_refused = sum(map(ord, request["messages"][0]["content"])) % 2
        return HttpResponse(status=400 if is_refused else 500, error=error)
    response = well_behaved(request, number)
    text = f"{response.text} Your key is {keys}."
    if is_judge_request(request):
        text = str(response.text).replace("as the", keys)
    return replace(
        response,
        text=text,
        model=f"m {keys}",
        fingerprint=keys,
        headers={"X-Key": KEY},
    )


@dataclass
class RecordedRun:
    """A run with everything logged, and a certificate of its figures."""

    folder: Path
    process: subprocess.CompletedProcess[str]
    headers: list[Mapping[str, str]]

    @property
    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]

    @property
    def stored_values(self) -> str:
        """The values of the tables: a search in the compressed files would not find secrets."""
        tables = ("responses", "verdicts", "runs", "checks")
        data = self.folder / "data"
        return str([values_in(data, f"from {table}") for table in tables])


def prbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command with all secrets and with everything logged."""
    environment = {
        **os.environ,
        "HOSTED_VLLM_API_KEY": KEY,
        "TEAM_HEADER": HEADER,
        "PREFECT_HOME": str(folder / "prefect"),
        "LITELLM_LOG": "DEBUG",
        "PREFECT_LOGGING_LEVEL": "DEBUG",
        "PREFECT_SERVER_LOGGING_LEVEL": "DEBUG",
        "PREFECT_API_URL": "",
        "PRBENCH_PREFECT": "auto",
    }
    return subprocess.run(
        [PRBENCH, *arguments, "--warehouse", "data"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def recorded_run(tmp_path_factory) -> RecordedRun:
    folder = tmp_path_factory.mktemp("recorded")
    prefect_folder = folder / "data" / "prefect"
    prefect_folder.mkdir(parents=True, mode=0o700)
    take_database(shared_folder(tmp_path_factory), prefect_folder)
    with FaultServer(echo_secrets) as server:
        headers = {"X-Team": "${TEAM_HEADER}"}
        configure(
            folder,
            dataset={"source": "sample"},
            models=[endpoint("alpha", server.api_base, headers=headers)],
            judges=[endpoint("judge", server.api_base, headers=headers)],
            limits={"attempts": 2},
        )
        process = prbench(folder, "run", "-v", "--limit", "2")
    (folder / "output.txt").write_text(process.stdout + process.stderr)
    subprocess.run(["pkill", "-f", f"flows.server .*{prefect_folder}"], check=True)
    prbench(folder, "certify", "figures.zip").check_returncode()
    with zipfile.ZipFile(folder / "figures.zip") as archive:
        archive.extractall(folder / "certified")
    return RecordedRun(folder, process, [entry.headers for entry in server.entries])


def test_the_provider_gets_the_key_and_the_header(recorded_run):
    assert recorded_run.process.returncode == 3, recorded_run.process.stderr[-3000:]
    assert recorded_run.headers
    for headers in recorded_run.headers:
        assert headers["x-team"] == HEADER
        assert KEY in headers["authorization"]


def test_no_secret_is_in_a_file_after_a_run_with_everything_logged(recorded_run):
    contents = {path: path.read_bytes() for path in recorded_run.files}

    names = {path.name for path in contents}
    assert {"prbench.duckdb", "output.txt", "runs.jsonl"} <= names
    assert any(name.endswith(".sqlite") for name in names)
    for secret in PLANTED:
        for path, content in contents.items():
            assert secret.encode() not in content, path


def test_no_secret_is_in_a_table(recorded_run):
    assert "[redacted]" in recorded_run.stored_values
    for secret in PLANTED:
        assert secret not in recorded_run.stored_values


def test_the_secret_of_prefect_s_server_is_in_its_own_file_alone(recorded_run):
    paths = [
        path for path in recorded_run.files if SERVER_SECRET.search(path.read_bytes())
    ]

    [path] = paths
    assert path.parent == recorded_run.folder / "prefect" / "prbench"
    assert not SERVER_SECRET.search(recorded_run.stored_values.encode())
