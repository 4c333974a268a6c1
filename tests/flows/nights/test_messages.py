"""The messages in the operations guide are those of real nights: a clean one, a drop after a kill,
an outage.
"""

import re
from pathlib import Path

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from flows.run.record import run_row
from tests.flows.conftest import CONCURRENCY, PROJECT
from tests.flows.nights.night_world import NightRun, NightWorld, night_world
from tests.kit import at
from warehouse import Warehouse

pytestmark = pytest.mark.slow

GUIDE = (PROJECT / "flows" / "operations.md").read_text()
PRICE = {"input_usd_per_mtok": 20.0, "output_usd_per_mtok": 100.0}


def message_of(night: NightRun, folder: Path) -> str:
    """The only message of a night, with the folder, run, address and waiting time of the guide."""
    [message] = night.messages
    text = f"{message['title']}\n\n{message['message']}"
    text = text.replace(str(folder), "/srv/prbench")
    text = re.sub(
        r"run \S+, begun \d\d:\d\d UTC",
        "run 20261127T010000-5d1c2a7e, begun 01:00 UTC",
        text,
    )
    text = re.sub(r"127\.0\.0\.1:\d+", "10.0.0.7:8000", text)
    return re.sub(r"successful reply for \d+ s", "successful reply for 60 s", text)


def without_cost(message: str) -> str:
    """The message without its cost: the lengths of generated responses and the calls in an outage
    differ.
    """
    return re.sub(r"Cost: .*", "", message)


def record_kill(world: NightWorld, night: str):
    """Store the row of a run whose process is gone."""
    folder = world.command.folder
    job = load_job(
        Arguments(
            config=folder / "prbench.yaml",
            warehouse=folder / "data",
            night=night,
        )
    )
    warehouse = Warehouse(folder / "data")
    warehouse.write("runs", [run_row(job, [], at(0), None, "running")])
    warehouse.publish()


@pytest.mark.long
def test_the_guide_shows_the_messages_that_nights_send(tmp_path):
    with night_world(tmp_path) as world:
        world.configure(
            models=[
                world.endpoint(label, resample="nightly", price=PRICE)
                for label in ("alpha", "fresh")
            ],
            judges=[
                world.endpoint(label, price=PRICE) for label in ("strict", "mild")
            ],
            limits={
                "concurrency": CONCURRENCY,
                "attempts": 2,
                "outage_s": 3,
            },
            report={"enabled": True},
            alerts={**world.settings["alerts"], "when": "always"},
        )
        clean = world.night("2026-11-26")
        record_kill(world, "2026-11-27")
        regressed = world.night("2026-11-28", has_regressed=True)
        outages = [
            world.night(night, code=3, silent=("strict", "alpha"))
            for night in ("2026-11-29", "2026-11-30")
        ]

    nights = [clean, regressed, *outages]
    messages = [without_cost(message_of(night, tmp_path)) for night in nights]
    messages_in_guide = re.findall(r"```text\n(.*?)\n```", GUIDE, re.DOTALL)
    assert messages == list(map(without_cost, messages_in_guide))
    assert [night.n_pings for night in nights] == [1, 1, 0, 0]
