"""A planted key cannot be found anywhere: in nothing that is stored, logged or printed, at any
level.
"""

import base64
import json
import os
import re
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.flows.conftest import PRBENCH
from tests.flows.prefect_server import take_database
from tests.kit import shared_folder, values_in

pytestmark = pytest.mark.slow

SECRETS = {
    "HOSTED_VLLM_API_KEY": "sk-planted-0011223344556677",
    "TEAM_HEADER": "header-planted-8899aabbccdd",
}
URL_PASSWORD = "url-planted-eeff00112233"
KEY = SECRETS["HOSTED_VLLM_API_KEY"]
FORMS = [
    base64.b64encode(f"user:{KEY}".encode()).decode(),
    quote(f"key={KEY}", safe=""),
    json.dumps({"key": KEY}),
]
"""Other forms in which providers may repeat the key."""


def _echoing(request: Request, number: int) -> HttpResponse:
    """Repeat the secrets in errors and texts, as careless providers do."""
    if is_judge_request(request) and number == 0:
        planted = (
            " ".join([*SECRETS.values(), *FORMS]) + f" https://user:{URL_PASSWORD}@proxy.example"
        )
        status = 400 if sum(map(ord, request["messages"][0]["content"])) % 2 else 500
        return HttpResponse(
            status=status,
            error={
                "message": f"no: {planted}",
                "type": "x",
                "code": None,
            },
        )
    good = well_behaved(request, number)
    keys = f"{KEY} {' '.join(FORMS)}"
    text = (
        str(good.text).replace("as the", keys)
        if is_judge_request(request)
        else f"{good.text} Your key is {keys}."
    )
    return replace(
        good,
        text=text,
        model=f"m {keys}",
        fingerprint=keys,
        headers={"X-Key": KEY},
    )


def test_no_secret_is_left_anywhere_after_a_run_with_everything_logged(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    recording = tmp_path / "data" / "prefect"
    recording.mkdir(parents=True, mode=0o700)
    take_database(shared_folder(tmp_path_factory), recording)
    with FaultServer(_echoing) as server:
        endpoint = {"api_base": server.api_base, "headers": {"X-Team": "${TEAM_HEADER}"}}
        config = {
            "dataset": {"source": "sample"},
            "models": [
                {
                    "name": "hosted_vllm/alpha",
                    "label": "alpha",
                    **endpoint,
                }
            ],
            "judges": [
                {
                    "name": "hosted_vllm/judge",
                    "label": "judge",
                    **endpoint,
                }
            ],
            "limits": {"attempts": 2},
        }
        (tmp_path / "prbench.yaml").write_text(yaml.safe_dump(config))
        environment = {
            **os.environ,
            **SECRETS,
            "PREFECT_HOME": str(tmp_path / "prefect"),
            "LITELLM_LOG": "DEBUG",
            "PREFECT_LOGGING_LEVEL": "DEBUG",
            "PREFECT_SERVER_LOGGING_LEVEL": "DEBUG",
            "PREFECT_API_URL": "",
            "PRBENCH_PREFECT": "auto",
        }
        done = subprocess.run(
            [PRBENCH, "run", "-v", "--limit", "2", "--warehouse", "data"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        (tmp_path / "said.txt").write_text(done.stdout + done.stderr)
        subprocess.run(["pkill", "-f", f"flows.server .*{recording}"], check=True)
        assert done.returncode == 3, done.stderr[-3000:]
        certify = [PRBENCH, "certify", "figures.zip", "--warehouse", "data"]
        subprocess.run(
            certify,
            cwd=tmp_path,
            env=environment,
            check=True,
        )
        with zipfile.ZipFile(tmp_path / "figures.zip") as archive:
            archive.extractall(tmp_path / "certified")
        headers = [entry.headers for entry in server.entries]
    assert headers
    assert all(SECRETS["TEAM_HEADER"] == sent["x-team"] for sent in headers)
    assert all(SECRETS["HOSTED_VLLM_API_KEY"] in sent["authorization"] for sent in headers)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"prbench.duckdb", "said.txt", "runs.jsonl"} <= names
    assert any(name.endswith(".sqlite") for name in names)
    # The values of the tables: a search in the compressed files would not find secrets there.
    stored = str(
        [
            values_in(tmp_path / "data", f"from {name}")
            for name in ("responses", "verdicts", "runs", "checks")
        ]
    )
    assert "[redacted]" in stored
    planted = [*SECRETS.values(), URL_PASSWORD, *FORMS]
    leaks = [
        (str(path), secret)
        for path in files
        for secret in planted
        if secret.encode() in path.read_bytes()
    ]
    assert leaks == []
    assert not any(secret in stored for secret in planted)
    # The secret of the run's own Prefect server, plain and as in a header.
    own = re.compile(rb"prbench:[\w-]{43}|cHJiZW5jaD[\w+/]{20,}")
    assert [tmp_path / "prefect" / "prbench"] == [
        path.parent for path in files if own.search(path.read_bytes())
    ]
    assert not own.search(stored.encode())
