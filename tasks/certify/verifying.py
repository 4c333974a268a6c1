"""Verifying: the figures of a certificate computed again, from its rows alone."""

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tasks.aggregate import stale_intervals
from tasks.certify.archive import unpack, verified_digest
from tasks.certify.comparing import Compared, compare
from tasks.certify.members import LEADERBOARDS, MODELS, ROWS, RUNS, member_of, model_texts, write_rows
from tasks.certify.texts import Texts, check_texts
from tasks.maintain import Damaged
from tasks.rules.errors import UsageError
from warehouse import Derivation, WarehouseError

_RECOMPUTED = "recomputed"


@dataclass(frozen=True)
class Verification:
    """What came of verifying a certificate.

    Attributes:
        digest: that of the file, which its bytes have.
        about: benchmark, revision and versions, as the certificate says.
        compared: leaderboard -> its figures beside those computed here.
        other_sql: the models whose SQL here is not that of the certificate.
        texts: what the texts came to that were given; None without any.
    """

    digest: str
    about: dict[str, Any]
    compared: dict[str, Compared]
    other_sql: list[str] = field(default_factory=list)
    texts: Texts | None = None

    @property
    def is_confirmed(self) -> bool:
        """Whether all figures are the same, and all given texts are those of the certificate."""
        has_other = any(each.differences for each in self.compared.values())
        return not has_other and (self.texts is None or not self.texts.differing)


def verify(file: Path, *, digest: str | None = None, texts: tuple[Path, ...] = ()) -> Verification:
    """Compute the figures of a certificate again and compare them; with `texts`, check these against its hashes too.

    Raises:
        UsageError: there is no such file.
        Refused: its bytes do not have its digest, or not the one that was published.
        Damaged: it does not hold what a certificate does.
    """
    if not file.is_file():
        raise UsageError(f"{file}: no such file; check the path")
    actual = verified_digest(file, digest)
    with TemporaryDirectory(prefix="prbench-") as temporary:
        folder = Path(temporary)
        manifest = unpack(file, folder)
        _refuse_incomplete(file, {each["name"] for each in manifest["members"]})
        try:
            compared = _recomputed(folder, manifest["benchmark"], manifest["dataset_revision"])
        except (WarehouseError, ValueError, RecursionError) as error:
            raise Damaged(f"{file}: {error}; it was not made by `prbench certify`") from error
        own = model_texts()
        certified = {each["name"] for each in manifest["members"] if each["name"].startswith("sql/")}
        other = sorted(
            name for name in own.keys() | certified
            if name not in own or name not in certified or (folder / name).read_bytes() != own[name].encode()
        )  # fmt: skip
        checked = check_texts(folder, manifest["benchmark"], texts) if texts else None
    about = {name: value for name, value in manifest.items() if name != "members"}
    return Verification(actual, about, compared, other, checked)


def _refuse_incomplete(file: Path, members: set[str]) -> None:
    lacking = {member_of(name) for name in (*ROWS, RUNS, *LEADERBOARDS)} - members
    if lacking:
        raise Damaged(f"{file}: lacks {min(lacking)}; it was not made by `prbench certify`")


def _recomputed(folder: Path, benchmark: str, revision: str) -> dict[str, Compared]:
    same = {"benchmark": benchmark, "dataset_revision": revision}
    derivation = Derivation(folder / "figures.duckdb", MODELS)
    derivation.compute({name: folder / member_of(name) for name in ROWS}, same)
    with derivation.reader() as reader:
        intervals = stale_intervals(reader)
    derivation.add("intervals", intervals)
    with derivation.reader() as reader:
        write_rows(reader, LEADERBOARDS, folder / _RECOMPUTED, benchmark, revision)
    return {name: _compared(folder, name) for name in LEADERBOARDS}


def _compared(folder: Path, name: str) -> Compared:
    with (
        (folder / member_of(name)).open(encoding="utf-8") as certified,
        (folder / _RECOMPUTED / member_of(name)).open(encoding="utf-8") as recomputed,
    ):
        return compare(name, certified, recomputed)
