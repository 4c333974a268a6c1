"""The findings of `doctor` on the configured Prefect server."""

import base64
from collections.abc import Iterator

import pytest

from flows.cli.doctor_checks import examine
from flows.server import check_server
from tests.faults.anything import AnyServer, Plain, Seen
from tests.kit import job_on

pytestmark = pytest.mark.slow

SECRET = "prbench:a-long-secret"
OTHER_SECRET = "requires a secret other than PREFECT_API_AUTH_STRING"


class Server(AnyServer):
    """A server that checks the secret like a Prefect server."""

    secret: str | None = SECRET
    status = 200

    def __init__(self):
        super().__init__(self._checked)
        self.host = self.address.removeprefix("http://")

    def _checked(self, seen: Seen) -> Plain:
        is_known = True
        if self.secret is not None:
            credentials = base64.b64encode(self.secret.encode()).decode()
            is_known = seen.headers.get("authorization") == f"Basic {credentials}"
        return Plain(
            self.status if is_known else 401,
            {"Location": f"{self.address}/api/health"},
        )


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Server]:
    """A server whose address is in the environment of a user without a Prefect configuration."""
    with Server() as server:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
        monkeypatch.setenv("PREFECT_API_URL", f"http://{server.host}/api/")
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", SECRET)
        yield server


def test_a_server_without_a_secret_is_a_problem(server, tmp_path):
    server.secret = None

    findings = {
        finding.subject: finding
        for finding in examine(job_on("sample", tmp_path / "data"))
    }

    finding = findings["Prefect server"]
    assert finding.is_ok is False
    assert f"{server.host} requires no secret" in finding.detail
    assert "PREFECT_SERVER_API_AUTH_STRING" in finding.detail
    assert SECRET not in finding.detail


@pytest.mark.parametrize(
    ("secret", "status", "own_secret", "is_ok", "sentence"),
    [
        (SECRET, 200, SECRET, True, "requires a secret"),
        (SECRET, 200, "", False, OTHER_SECRET),
        (SECRET, 200, "prbench:x", False, OTHER_SECRET),
        # No redirect is followed.
        (None, 302, SECRET, None, "responds with status 302"),
        (None, 307, SECRET, None, "responds with status 307"),
        (None, 404, SECRET, None, "responds with status 404"),
        (None, 500, SECRET, None, "responds with status 500"),
    ],
)
def test_a_server_is_well_if_it_requires_the_configured_secret(
    server,
    monkeypatch,
    secret,
    status,
    own_secret,
    is_ok,
    sentence,
):
    server.secret = secret
    server.status = status
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", own_secret)

    result, detail = check_server()

    assert result is is_ok
    assert detail.startswith(server.host)
    assert sentence in detail


@pytest.mark.usefixtures("server")
def test_an_unreachable_server_is_a_problem(monkeypatch):
    monkeypatch.setenv(
        "PREFECT_API_URL", "http://user:in-the-address@127.0.0.1:1/api"
    )

    is_ok, detail = check_server()

    assert is_ok is False
    assert detail.startswith("127.0.0.1:1 cannot be reached")


@pytest.fixture
def without_variables(server: Server, monkeypatch) -> Server:
    """The server, without variables that name it."""
    monkeypatch.delenv("PREFECT_API_URL")
    monkeypatch.delenv("PREFECT_API_AUTH_STRING")
    return server


@pytest.mark.usefixtures("without_variables")
def test_without_a_configured_server_all_is_well():
    is_ok, _ = check_server()

    assert is_ok


def test_a_server_of_a_profile_is_checked(without_variables, tmp_path):
    (tmp_path / "prefect").mkdir()
    (tmp_path / "prefect" / "profiles.toml").write_text(
        'active = "team"\n[profiles.team]\n'
        f'PREFECT_API_URL = "http://{without_variables.host}/api"\n'
        f'PREFECT_API_AUTH_STRING = "{SECRET}"\n'
    )

    is_ok, detail = check_server()

    assert is_ok
    assert detail == f"{without_variables.host} requires a secret"
