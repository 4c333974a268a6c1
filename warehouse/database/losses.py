"""What damage took and nothing here could bring back: kept until the rows are there again, or the user lets them go."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from warehouse.files.atomic import Unsound, read_sealed, write_sealed
from warehouse.files.damage import note
from warehouse.parts.part_list import Kind
from warehouse.parts.store import DAMAGED, aside

LOSSES = "losses.json"
_MOST_NAMED = 10
_WHAT_TO_DO = (
    "what is lost comes back with the next `prbench run` if its replies are in the ledger, and with importing it again "
    "if it was imported; no call is made for it unless you ask: `prbench run --replace-lost` calls again for what is "
    "still missing, and ends this message"
)


@dataclass(frozen=True)
class Loss:
    """Rows of one kind that are lost: how many there were before, and how many there are now.

    Where nothing is known of the rows but the part that held them, `part` names it and `n_before` is what its own
    metadata says (None where that cannot be read either); such a loss ends only when the user lets it go.
    """

    table: str
    benchmark: str | None
    model: str | None
    judge: str | None
    import_batch: str | None
    n_before: int | None
    n_now: int = 0
    part: str | None = None

    @property
    def kind(self) -> Kind:
        """The kind of the rows."""
        return self.table, self.benchmark, self.model, self.judge, self.import_batch

    @property
    def n_rows(self) -> int | None:
        """How many rows are lost, as far as that is known."""
        return None if self.n_before is None else self.n_before - self.n_now

    @property
    def line(self) -> str:
        """What is lost, in words."""
        named = (("benchmark", self.benchmark), ("model", self.model), ("judge", self.judge),
                 ("import", self.import_batch), ("part", self.part))  # fmt: skip
        of = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        number = "an unknown number of" if self.n_rows is None else f"{self.n_rows}"
        return f"{number} rows of {self.table}" + (f" ({of})" if of else "") + " are lost"


def lines_on(losses: Sequence[Loss]) -> list[str]:
    """What is lost and what to do, in words."""
    if not losses:
        return []
    lines = [loss.line for loss in losses[:_MOST_NAMED]]
    if len(losses) > _MOST_NAMED:
        lines.append(f"and rows of {len(losses) - _MOST_NAMED} more kinds; `prbench doctor` lists all")
    return [*lines, _WHAT_TO_DO]


def read_losses(root: Path) -> list[Loss]:
    """The losses of a warehouse; none where their record cannot be read."""
    try:
        return [Loss(**each) for each in read_sealed(root / DAMAGED / LOSSES)["losses"]]
    except FileNotFoundError:
        return []
    except (Unsound, KeyError, TypeError):
        return []


def mend_losses(root: Path) -> None:
    """Set a record of losses aside that cannot be read: what it said is not known any more."""
    path = root / DAMAGED / LOSSES
    try:
        if path.exists():
            read_sealed(path)
    except Unsound as error:
        to = aside(root, path)
        note(root, f"{path}: was damaged ({error}) and is now {to.name}; what was lost before is not known any more")


def add_losses(root: Path, before: Mapping[Kind, int], now: Mapping[Kind, int], tables: Iterable[str]) -> None:
    """Note of which kinds of some tables there are fewer rows than before."""
    missing = [
        Loss(*kind, n_before=n_before, n_now=now.get(kind, 0))
        for kind, n_before in before.items()
        if kind[0] in set(tables) and now.get(kind, 0) < n_before
    ]
    known = {loss.kind for loss in missing}
    # What was lost before from the same kind is still to come back: the count of then is the one to reach.
    earlier = [loss for loss in read_losses(root) if loss.part is not None or loss.kind not in known]
    highest = {loss.kind: loss.n_before for loss in read_losses(root) if loss.part is None}
    missing = [replace(loss, n_before=max(loss.n_before or 0, highest.get(loss.kind) or 0)) for loss in missing]
    if missing:
        write_losses(root, [*earlier, *missing])


def add_unknown(root: Path, table: str, part: str, n_rows: int | None) -> None:
    """Note that the rows of a part are lost of which nothing else is known."""
    write_losses(root, [*read_losses(root), Loss(table, None, None, None, None, n_rows, part=part)])


def settle(root: Path, now: Mapping[Kind, int]) -> None:
    """Look how much of what was lost is there again."""
    losses = read_losses(root)
    looked = [loss if loss.part else replace(loss, n_now=now.get(loss.kind, 0)) for loss in losses]
    left = [loss for loss in looked if loss.n_rows is None or loss.n_rows > 0]
    if left != losses:
        write_losses(root, left)


def write_losses(root: Path, losses: list[Loss]) -> None:
    """Make these the losses."""
    path = root / DAMAGED / LOSSES
    if losses:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(path, {"losses": [asdict(loss) for loss in losses]})
    else:
        path.unlink(missing_ok=True)
