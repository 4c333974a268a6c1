"""The machine that writes a warehouse: made-up machines with a simulated clock, without waiting."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.kit import Patch, row
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

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s
        self.meanwhile()

    def process_on(
        self, host: str, *, kernel: str | None = None, started_at_s: float = 0.0
    ) -> Owner:
        owner = Owner(self.root, Machine(kernel or f"kernel of {host}", host, started_at_s))
        owner.sleep, owner.clock = self.sleep, lambda: self.now_s  # type: ignore[method-assign]
        return owner

    def tell(self, line: str) -> None:
        self.lines.append(line)

    def refused(self, process: Owner) -> str:
        with pytest.raises(WarehouseBusy) as caught:
            process.begin(self.tell)
        assert len(str(caught.value).splitlines()) == 1
        return str(caught.value)


def beat(process: Owner) -> None:
    process.why_lost(must_write=True)


@pytest.fixture(autouse=True)
def _no_thread(monkeypatch: Patch) -> None:
    """Start no heartbeat thread: only tests rewrite the file."""
    monkeypatch.setattr(Owner, "keep_alive", lambda _: None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def files(world: World) -> set[str]:
    return {path.name for path in world.root.iterdir()}


def test_processes_of_one_machine_write_side_by_side_and_the_last_takes_the_heartbeat_away(
    world: World,
) -> None:
    first = world.process_on("a")
    second = world.process_on("a")
    first.begin(world.tell)
    second.begin(world.tell)
    first.end()
    beat(second)
    assert second.why_lost() is None
    assert FILE in files(world)
    second.end()

    assert files(world) == {"processes.lock", "claim.lock"}
    other = world.process_on("b")
    other.begin()
    assert other.why_lost() is None
    assert other.elsewhere() is None
    assert first.elsewhere() == "b"
    assert world.now_s == 0.0
    assert world.lines == []


def test_a_machine_is_refused_in_one_line_while_another_one_writes(world: World) -> None:
    writing = world.process_on("node7")
    other = world.process_on("b")
    writing.begin()
    world.meanwhile = lambda: beat(writing)
    line = world.refused(other)

    assert (
        "node7 writes this warehouse, or did so until it failed, and only one machine can at a"
        " time; wait" in line
    )
    assert world.lines == [
        f"{world.root}: node7 wrote here last; waiting up to 120 s to see whether it still does"
    ]
    assert world.now_s == 10
    assert writing.why_lost() is None


def test_who_does_not_want_to_wait_is_refused_at_once_and_told_how_to_take_over(
    world: World,
) -> None:
    writing = world.process_on("a")
    writing.begin()
    with pytest.raises(
        WarehouseBusy, match=r"or did so until it failed, .* `prbench aggregate` here to take over"
    ):
        world.process_on("b").begin()

    assert world.now_s == 0


def test_the_heartbeat_of_a_machine_that_failed_is_taken_over_by_the_readers_own_clock(
    world: World,
) -> None:
    failed = world.process_on("a")
    other = world.process_on("b", started_at_s=1e12)
    failed.begin()
    other.begin(world.tell)

    assert world.now_s == 120 + 70
    assert world.lines[1:] == [
        f"{world.root}: a no longer writes here; this machine takes over in 70 s"
    ]
    assert failed.elsewhere() == "b"
    assert other.why_lost() is None


def test_who_was_stopped_for_so_long_that_another_machine_took_over_writes_nothing_more(
    world: World,
) -> None:
    stopped = world.process_on("a")
    other = world.process_on("b")
    stopped.begin()
    other.begin(world.tell)
    why = stopped.why_lost()
    assert why is not None
    assert "b took over" in why
    stopped.end()
    assert other.why_lost() is None

    # Also if the other one has finished meanwhile: this machine's view of the files is outdated.
    other.end()
    assert stopped.why_lost() == why
    assert FILE not in files(world)


def test_who_was_stopped_and_nobody_took_over_goes_on(world: World) -> None:
    stopped = world.process_on("a")
    other = world.process_on("b")
    stopped.begin()
    world.now_s += 1e6
    assert stopped.why_lost() is None

    # Checking its ownership rewrites the file, which a waiting machine sees.
    world.meanwhile = lambda: stopped.why_lost() if world.now_s == 1e6 + 120 else None
    assert "a writes this warehouse" in world.refused(other)


def test_a_machine_that_was_started_again_does_not_wait_for_itself(world: World) -> None:
    world.process_on("a", kernel="before").begin()
    written_at_s = json.loads((world.root / FILE).read_text(encoding="utf-8"))["at_s"]
    again = world.process_on("a", kernel="after", started_at_s=written_at_s + 1)
    again.begin(world.tell)

    assert world.now_s == 0.0
    assert again.why_lost() is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"host": "newer", "format": 2}'])
def test_a_heartbeat_that_cannot_be_read_is_another_machines_until_it_expires(
    world: World, content: bytes
) -> None:
    (world.root / FILE).write_bytes(content)
    process = world.process_on("a")
    assert process.elsewhere() in {"another machine", "newer"}
    process.begin(world.tell)

    assert world.now_s == 190.0
    assert process.elsewhere() is None


def test_a_heartbeat_that_cannot_be_written_lets_nothing_be_written(world: World) -> None:
    process = world.process_on("a")
    process.begin()
    world.root.rename(world.root.with_name("away"))
    world.root.touch()
    why = process.why_lost()
    world.root.unlink()
    world.root.with_name("away").rename(world.root)

    assert why is not None
    assert "cannot be read or written" in why
    assert process.why_lost() is None


def foreign(warehouse: Warehouse) -> Owner:
    """A heartbeat of another machine that does not change."""
    heartbeat = Owner(warehouse.root, Machine("theirs", "node7", 0.0))
    heartbeat.begin()
    return heartbeat


def test_who_only_reads_is_not_refused_and_takes_no_life_sign_away(warehouse: Warehouse) -> None:
    warehouse.publish()
    foreign(warehouse)
    (warehouse.root / "living").mkdir(exist_ok=True)
    (warehouse.root / "living" / "r.lock").touch()

    assert warehouse.elsewhere() == "node7"
    assert warehouse.reader().value("select count(*) from runs") == 0
    assert warehouse.living_runs() == ["r"]


def test_a_process_that_lost_its_place_writes_no_part_and_publishes_nothing(
    warehouse: Warehouse,
) -> None:
    member = row(
        "split_members",
        split="s",
        task_id="t",
        position=1,
    )
    with warehouse.writing():
        warehouse.write("split_members", [member])
        before = sorted(warehouse.root.rglob("*.parquet"))
        (warehouse.root / FILE).unlink()
        foreign(warehouse)
        assert "took over" in (why_lost() or "")
        for write in (
            lambda: warehouse.write("split_members", [member | {"task_id": "u"}]),
            warehouse.publish,
        ):
            with pytest.raises(WarehouseBusy, match="took over"):
                write()

    assert before == sorted(warehouse.root.rglob("*.parquet"))
    assert not warehouse.database.exists()
    assert warehouse.elsewhere() == "node7"


def test_of_machines_that_take_over_at_once_the_last_to_write_stays(world: World) -> None:
    world.process_on("failed").begin()
    first = world.process_on("b")
    second = world.process_on("c")

    def follow() -> None:
        if world.now_s == 190:  # it checked before the first one wrote, and writes now
            second.write_file()
        if world.now_s >= 190:
            beat(second)

    world.meanwhile = follow
    assert "c writes this warehouse" in world.refused(first)
    assert second.why_lost() is None


def test_what_a_process_of_the_machine_takes_over_the_others_wait_for(world: World) -> None:
    world.process_on("failed").begin()
    first = world.process_on("b")
    second = world.process_on("b")
    joining = threading.Thread(target=second.begin)
    world.meanwhile = lambda: joining.start() if world.now_s == 190 else None
    first.begin(world.tell)
    joining.join(60)

    assert first.why_lost() is None
    assert second.why_lost() is None
    assert world.now_s == 190.0


def test_told_to_take_over_nobody_watches(world: World) -> None:
    failed = world.process_on("a")
    other = world.process_on("b")
    failed.begin()
    other.takeover_after_s = 0.0
    other.begin(world.tell)

    assert world.now_s == 70.0
    assert other.why_lost() is None
    assert "b took over" in (failed.why_lost() or "")
