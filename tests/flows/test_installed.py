"""The package as a wheel in an environment of its own: it has all it needs, and writes nothing into
itself.
"""

import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.flows.conftest import PROJECT
from tests.kit import values_in

pytestmark = pytest.mark.slow
PACKAGES = ("flows", "tasks", "sql", "expectations", "warehouse")


@dataclass(frozen=True)
class Installation:
    """An environment with the wheel; its libraries are those of the tests' environment."""

    wheel: Path
    environment: Path

    def run(
        self,
        folder: Path,
        *arguments: str,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.environment / "bin" / "prbench", *arguments],
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def digests(self) -> Mapping[str, str]:
        """Every file of the environment, with a digest of its content."""
        files = [path for path in self.environment.rglob("*") if path.is_file()]
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
        }


@pytest.fixture(scope="module")
def installation(tmp_path_factory) -> Installation:
    folder = tmp_path_factory.mktemp("installed")
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        str(folder),
    ]
    subprocess.run(
        build,
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    install = [
        python,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    # Python ignores `.pth` files in that folder, which would lead to the checkout.
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return Installation(wheel, environment)


def test_the_wheel_has_every_file_of_the_packages_and_no_data(installation):
    data_folders = (
        PROJECT / "warehouse" / "data",
        PROJECT / "warehouse" / "embedded",
    )
    package_files = set()
    for package in PACKAGES:
        for path in (PROJECT / package).rglob("*"):
            is_data = any(folder in path.parents for folder in data_folders)
            if path.is_file() and "__pycache__" not in path.parts and not is_data:
                package_files.add(str(path.relative_to(PROJECT)))

    names = zipfile.ZipFile(installation.wheel).namelist()

    wheel_files = {name for name in names if not name.startswith("prbench_pipeline-")}
    assert wheel_files == package_files


def test_an_installed_package_stays_as_it_is(installation, provider, tmp_path):
    endpoint = {"name": "hosted_vllm/alpha", "api_base": provider.api_base}
    settings = {
        "dataset": {"source": "sample"},
        "models": [endpoint],
        "judges": [endpoint],
    }
    (tmp_path / "prbench.yaml").write_text(yaml.safe_dump(settings))
    digests = installation.digests()

    run = installation.run(tmp_path, "run", "--limit", "2")

    assert run.returncode == 0, run.stderr
    assert f"Database: {tmp_path}/warehouse/data/prbench.duckdb\n" in run.stdout
    assert (tmp_path / "warehouse/data/report/prbench/index.html").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"prbench.yaml", "warehouse"}
    assert installation.digests() == digests
    commits = values_in(tmp_path / "warehouse/data", "select git_commit from runs")
    assert commits == [(None,)]
