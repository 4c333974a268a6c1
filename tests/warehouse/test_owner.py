"""The machine that writes a warehouse: made-up machines with a simulated clock, without waiting."""

import errno
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.kit import row
from warehouse import Warehouse, WarehouseBusy
from warehouse.locks import Machine, Owner, why_lost

FILE = "machine.lock"


@dataclass
class World:
    """A folder that machines share, and a simulated time; `meanwhile` happens while a machine
    waits.
    """

    root: Path
    now_s: float = 0.0
    lines: list[str] = field(default_factory=list)
    meanwhile: Callable[[], object] = lambda: None

    def sleep(self, duration_s: float):
        self.now_s += duration_s
        self.meanwhile()

    def process_on(
        self,
        host: str,
        *,
        kernel: str | None = None,
        started_at_s: float = 0.0,
    ) -> Owner:
        owner = Owner(
            self.root, Machine(kernel or f"kernel of {host}", host, started_at_s)
        )
        owner.sleep = self.sleep  # type: ignore[method-assign]
        owner.clock = lambda: self.now_s  # type: ignore[method-assign]
        return owner

    def tell(self, line: str):
        self.lines.append(line)

    def refused(self, process: Owner) -> str:
        with pytest.raises(WarehouseBusy) as caught:
            process.begin(self.tell)
        assert len(str(caught.value).splitlines()) == 1
        return str(caught.value)


def beat(process: Owner):
    process.renew(must_write=True)


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch):
    """Start no heartbeat thread: only tests rewrite the file."""
    monkeypatch.setattr(Owner, "keep_alive", lambda _: None)


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def files(world: World) -> set[str]:
    return {path.name for path in world.root.iterdir()}


def test_processes_of_one_machine_write_side_by_side_and_the_last_takes_the_heartbeat_away(
    world,
):
    processes = [world.process_on("a"), world.process_on("a")]
    for process in processes:
        process.begin(world.tell)

    processes[0].end()
    beat(processes[1])
    assert processes[1].renew() is None
    assert FILE in files(world)

    processes[1].end()
    assert files(world) == {"processes.lock", "claim.lock"}


def test_a_machine_begins_at_once_where_another_one_has_ended(world):
    ended = world.process_on("a")
    process = world.process_on("b")
    ended.begin()
    ended.end()

    process.begin(world.tell)

    assert process.renew() is None
    assert process.other_host() is None
    assert ended.other_host() == "b"
    assert world.now_s == 0.0
    assert world.lines == []


def test_a_machine_is_refused_in_one_line_while_another_one_writes(world):
    writing = world.process_on("node7")
    writing.begin()
    world.meanwhile = lambda: beat(writing)

    line = world.refused(world.process_on("b"))

    assert "node7 writes this warehouse, or did so until it failed" in line
    assert "only one machine can at a time; wait" in line
    assert world.lines == [
        f"{world.root}: node7 wrote here last; waiting up to 120 s to see whether it still does"
    ]
    assert world.now_s == 10
    assert writing.renew() is None


def test_who_does_not_want_to_wait_is_refused_at_once_and_told_how_to_take_over(
    world,
):
    writing = world.process_on("a")
    writing.begin()

    advice = r"or did so until it failed, .* `prbench aggregate` here to take over"
    with pytest.raises(WarehouseBusy, match=advice):
        world.process_on("b").begin()

    assert world.now_s == 0


def test_the_heartbeat_of_a_machine_that_failed_is_taken_over_by_the_readers_own_clock(
    world,
):
    failed = world.process_on("a")
    process = world.process_on("b", started_at_s=1e12)
    failed.begin()

    process.begin(world.tell)

    assert world.now_s == 120 + 70
    line = f"{world.root}: a no longer writes here; this machine takes over in 70 s"
    assert world.lines[1:] == [line]
    assert failed.other_host() == "b"
    assert process.renew() is None


def test_who_was_stopped_for_so_long_that_another_machine_took_over_writes_nothing_more(
    world,
):
    stopped = world.process_on("a")
    rival = world.process_on("b")
    stopped.begin()
    rival.begin(world.tell)

    reason = stopped.renew()
    stopped.end()

    assert "b took over" in (reason or "")
    assert rival.renew() is None

    # Also if the other one has finished meanwhile: this machine's view of the files is outdated.
    rival.end()
    assert stopped.renew() == reason
    assert FILE not in files(world)


def test_who_was_stopped_and_nobody_took_over_goes_on(world):
    stopped = world.process_on("a")
    stopped.begin()
    world.now_s += 1e6

    assert stopped.renew() is None
    # Checking its ownership rewrites the file, which a waiting machine sees.
    world.meanwhile = lambda: stopped.renew() if world.now_s == 1e6 + 120 else None
    assert "a writes this warehouse" in world.refused(world.process_on("b"))


def test_a_machine_that_was_started_again_does_not_wait_for_itself(world):
    world.process_on("a", kernel="before").begin()
    written_at_s = json.loads((world.root / FILE).read_text())["at_s"]
    restarted = world.process_on(
        "a",
        kernel="after",
        started_at_s=written_at_s + 1,
    )

    restarted.begin(world.tell)

    assert world.now_s == 0.0
    assert restarted.renew() is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1, 2]", b'{"host": "newer", "format": 2}']
)
def test_a_heartbeat_that_cannot_be_read_is_another_machines_until_it_expires(
    world, content
):
    (world.root / FILE).write_bytes(content)
    process = world.process_on("a")
    assert process.other_host() in {"another machine", "newer"}
    process.begin(world.tell)

    assert world.now_s == 190.0
    assert process.other_host() is None


def test_a_heartbeat_that_cannot_be_written_lets_nothing_be_written(world):
    process = world.process_on("a")
    process.begin()
    world.root.rename(world.root.with_name("away"))
    world.root.touch()
    reason = process.renew()
    world.root.unlink()
    world.root.with_name("away").rename(world.root)

    assert "cannot be read or written" in (reason or "")
    assert process.renew() is None


def test_a_heartbeat_that_cannot_be_renewed_lets_nothing_be_written(
    world, monkeypatch
):
    process = world.process_on("a")
    process.begin()
    world.now_s += 61.0
    full_disk = OSError(errno.ENOSPC, "the disk is full")
    monkeypatch.setattr(process, "write_file", Mock(side_effect=full_disk))

    reasons = [process.renew(), process.renew()]

    assert ["the disk is full" in (reason or "") for reason in reasons] == [True] * 2


def foreign(warehouse: Warehouse) -> Owner:
    """A heartbeat of another machine that does not change."""
    heartbeat = Owner(warehouse.root, Machine("theirs", "node7", 0.0))
    heartbeat.begin()
    return heartbeat


def test_who_only_reads_is_not_refused_and_takes_no_life_sign_away(warehouse):
    warehouse.publish()
    foreign(warehouse)
    (warehouse.root / "living").mkdir(exist_ok=True)
    (warehouse.root / "living" / "r.lock").touch()

    assert warehouse.other_host() == "node7"
    assert warehouse.reader().value("select count(*) from runs") == 0
    assert warehouse.living_runs() == ["r"]


def test_a_takeover_is_noticed_at_most_a_second_after_the_last_look(world):
    process = world.process_on("a")
    process.begin()
    assert process.renew() is None
    (world.root / FILE).unlink()
    world.process_on("b").begin()

    assert process.renew() is None
    world.now_s += 1.0
    assert "b took over" in (process.renew() or "")


def test_a_process_that_lost_its_warehouse_writes_no_part_and_publishes_nothing(
    warehouse, monkeypatch
):
    monkeypatch.setattr(Owner, "read_valid_s", 0.0)
    member = row(
        "split_members",
        split="s",
        task_id="t",
        position=1,
    )
    with warehouse.writing():
        warehouse.write("split_members", [member])
        parts = sorted(warehouse.root.rglob("*.parquet"))
        (warehouse.root / FILE).unlink()
        foreign(warehouse)

        assert "took over" in (why_lost() or "")
        with pytest.raises(WarehouseBusy, match="took over"):
            warehouse.write("split_members", [member | {"task_id": "u"}])
        with pytest.raises(WarehouseBusy, match="took over"):
            warehouse.publish()

    assert sorted(warehouse.root.rglob("*.parquet")) == parts
    assert not warehouse.database.exists()
    assert warehouse.other_host() == "node7"


def test_of_machines_that_take_over_at_once_the_last_to_write_stays(world):
    world.process_on("failed").begin()
    last_writer = world.process_on("c")

    def follow():
        if (
            world.now_s == 190
        ):  # it checked before the other one wrote, and writes now
            last_writer.write_file()
        if world.now_s >= 190:
            beat(last_writer)

    world.meanwhile = follow

    assert "c writes this warehouse" in world.refused(world.process_on("b"))
    assert last_writer.renew() is None


def test_what_a_process_of_the_machine_takes_over_the_others_wait_for(world):
    world.process_on("failed").begin()
    claiming = world.process_on("b")
    joining = world.process_on("b")
    thread = threading.Thread(target=joining.begin)
    world.meanwhile = lambda: thread.start() if world.now_s == 190 else None

    claiming.begin(world.tell)
    thread.join(60)

    assert claiming.renew() is None
    assert joining.renew() is None
    assert world.now_s == 190.0


def test_told_to_take_over_nobody_watches(world):
    failed = world.process_on("a")
    process = world.process_on("b")
    failed.begin()

    process.takeover_after_s = 0.0
    process.begin(world.tell)

    assert world.now_s == 70.0
    assert process.renew() is None
    assert "b took over" in (failed.renew() or "")
