"""The local hub and the three processes that read from it, each started once."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tasks.dataset.server import HubServer, data_file, parquet
from tests.tasks.dataset.sessions import (
    DOWN,
    ID,
    OFFLINE,
    ONLINE,
    TOKEN,
    Session,
    publish_all,
    rows_of,
    run,
)


@pytest.fixture(scope="module")
def hub() -> Iterator[HubServer]:
    """A hub with everything that the sessions ask for."""
    with HubServer() as server:
        publish_all(server)
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the cache, and the working folder; it holds a folder named like the data set."""
    home = tmp_path_factory.mktemp("home")
    shadow = home / ID / data_file("finance")
    shadow.parent.mkdir(parents=True)
    shadow.write_bytes(parquet(rows_of("local")["finance"]))
    return home


@pytest.fixture(scope="module")
def online(hub: HubServer, home: Path) -> Session:
    """A process that reaches the hub and starts with an empty cache."""
    before = len(hub.requests)
    outcomes, stderr = run(ONLINE, hub.url, home, HF_TOKEN=TOKEN)
    return Session(outcomes, stderr, hub.requests[before:])


@pytest.fixture(scope="module")
def offline(online: Session, hub: HubServer, home: Path) -> Session:
    """A process that is forbidden the network, with the cache that `online` has filled."""
    before = len(hub.requests)
    outcomes, stderr = run(OFFLINE, hub.url, home, HF_HUB_OFFLINE="1")
    return Session(outcomes, stderr, hub.requests[before:])


@pytest.fixture(scope="module")
def down(online: Session, home: Path) -> Session:
    """A process whose hub refuses connections, with the cache that `online` has filled."""
    with socket.socket() as unused:  # bound but not listening, so nobody else can answer there
        unused.bind(("127.0.0.1", 0))
        outcomes, stderr = run(DOWN, f"http://127.0.0.1:{unused.getsockname()[1]}", home)
    return Session(outcomes, stderr, [])
