"""Verification of a certificate: its figures are recomputed from its rows alone, and compared."""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import sql
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.bundles.bundle import KINDS, Damaged, published_in, read_bundle, verify_bundle
from tasks.bundles.stores import Store, location_of
from tasks.certify import certifying
from tasks.certify.texts import Ids, Texts, check_ids, check_texts
from tasks.measures import SCORE, TRIALS
from tasks.rules.errors import UsageError
from tasks.run.writing import StageReport
from warehouse import Reader, Row, WarehouseError
from warehouse.build import compute, load_rows
from warehouse.files import verified_digest

KEY = (
    "split",
    "is_own_hard",
    "breakdown",
    "label",
    "judge",
    "judge_config_hash",
    "template_hash",
    "grading",
    "judge_trial",
    "vintage",
    "model",
    "model_config_hash",
    "score_name",
)
"""The columns that identify a row of a leaderboard."""
_LATEST_COLUMNS = (
    "is_latest",
    "latest_rank",
    "latest_rank_low",
    "latest_rank_high",
    "n_tasks_latest_ranked",
)
"""The columns that depend on which vintage of a model is its current one."""
_RULES_MEMBER = certifying.member_of(certifying.COVERAGE_RULES)
_CONTRADICTORY_VERDICT = """
    select status, value
    from verdicts
    where
        value is distinct from case status
            when 'met' then 1 when 'partial' then 0.5 when 'unmet' then 0
        end
    limit 1
"""
"""Selects a verdict whose value does not match its status; a failure has no value."""
_COUNT_WEIGHTS_OUT_OF_BOUNDS = """
    select count(*)
    from criteria
    join tasks using (task_id)
    where is_admitted and weight not between ? and ?
"""
About = Mapping[str, Any]
"""The entries of the manifest, except the list of files."""


class FigureDifference(NamedTuple):
    """A certified figure that differs from the recomputed one; `column` is None if one side lacks
    the whole row.
    """

    leaderboard: str
    row: Row
    column: str | None
    certified: Any
    recomputed: Any


Compared = tuple[dict[str, int], list[FigureDifference]]
"""The numbers of certified `rows`, compared `figures` and `differing` figures; and the differing
figures.
"""


def compare_leaderboard(
    leaderboard: str,
    certified: Path,
    recomputed: Path,
    *,
    is_same_sql: bool,
    skipped_columns: Collection[str] = (),
) -> Compared:
    """Compare the rows of a leaderboard in two folders.

    Unless both have the same SQL, only certified columns count.

    Raises:
        ValueError: a row is not JSON, or two rows have the same key.
        TypeError: a row is not an object.
    """
    recomputed_rows = _rows_by_key(recomputed, leaderboard)
    certified_rows = _rows_by_key(certified, leaderboard)
    n_figures = 0
    differences = []
    for key in sorted(certified_rows.keys() | recomputed_rows.keys(), key=repr):
        certified_row = certified_rows.get(key)
        recomputed_row = recomputed_rows.get(key)
        row = certified_row or recomputed_row or {}
        identity = {column: value for column, value in row.items() if column in KEY}
        if certified_row is None or recomputed_row is None:
            differences.append(
                FigureDifference(
                    leaderboard,
                    identity,
                    column=None,
                    certified=_presence(certified_row),
                    recomputed=_presence(recomputed_row),
                )
            )
            continue
        columns = dict.fromkeys(certified_row)
        if is_same_sql:
            columns |= dict.fromkeys(recomputed_row)
        for column in columns:
            if column in KEY or column in skipped_columns:
                continue
            n_figures += 1
            figure = certified_row.get(column)
            recomputed_figure = recomputed_row.get(column)
            if not is_same(column, figure, recomputed_figure):
                differences.append(
                    FigureDifference(leaderboard, identity, column, figure, recomputed_figure)
                )
    counts = {
        "rows": len(certified_rows),
        "figures": n_figures,
        "differing": len(differences),
    }
    return counts, differences


def _presence(row: Row | None) -> str:
    return "absent" if row is None else "present"


def _rows_by_key(folder: Path, leaderboard: str) -> dict[tuple[Any, ...], Row]:
    rows: dict[tuple[Any, ...], Row] = {}
    for row in certifying.member_rows(folder, leaderboard):
        if not isinstance(row, dict):
            raise TypeError("a row of a leaderboard is not an object")
        key = tuple(json.dumps(row.get(column)) for column in KEY)
        if key in rows:
            raise ValueError("two rows of a leaderboard have the same key")
        rows[key] = row
    return rows


def is_same(column: str, certified: Any, recomputed: Any) -> bool:
    """Return whether two figures are equal, apart from the last digits."""
    if type(certified) is float and type(recomputed) is float:
        # Sums depend on the order of adding; the ends of intervals are computed in single
        # precision.
        tolerance = 1e-6 if column.endswith(("ci_low", "ci_high")) else 1e-9
        return math.isclose(certified, recomputed, rel_tol=tolerance, abs_tol=tolerance)
    return type(certified) is type(recomputed) and bool(certified == recomputed)


class Verification(NamedTuple):
    """The result of verifying a certificate.

    Attributes:
        digest: the digest of the file, which matches its bytes.
        about: the entries of the manifest, such as benchmark, revision and versions.
        leaderboards: leaderboard -> numbers of certified rows, and of compared and differing
            figures.
        differences: the figures of all leaderboards that differ.
        ids: the result of recomputing ids.
        other_sql: the models whose SQL in the certificate is not that of this version.
        notes: notes on what could not be checked, and on weights that are out of bounds.
        texts: the result of comparing given texts; None without any.
    """

    digest: str
    about: About
    leaderboards: dict[str, dict[str, int]]
    differences: list[FigureDifference]
    ids: Ids
    other_sql: list[str]
    notes: list[str]
    texts: Texts | None

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        filled = [counts for counts in self.leaderboards.values() if counts["rows"]]
        n_rows = sum(counts["rows"] for counts in filled)
        n_figures = sum(counts["figures"] for counts in filled)
        outcome = f"{len(self.differences)} differ" if self.differences else "all equal"
        size = f"{n_figures} figures in {n_rows} rows of {len(filled)} leaderboards"
        lines = [f"verify: certificate, {size} recomputed; {outcome}"]
        if self.other_sql:
            names = [Path(member).stem for member in self.other_sql]
            lines.append(
                "The certificate has other SQL than this version, whose SQL was used:"
                f" {', '.join(names)}"
            )
        intervals = self.about.get("intervals")
        if intervals != certifying.INTERVALS:
            lines.append(
                f"The certificate's intervals have another method than this version's: {intervals}"
            )
        lines += self.notes
        lines += self.ids.lines
        if self.texts is not None:
            lines += self.texts.lines
        lines.append(f"digest: {self.digest}")
        return lines

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            # An entry of the manifest replaces no result.
            **self.about,
            "is_confirmed": self.is_confirmed,
            "kind": "certificate",
            "digest": self.digest,
            "leaderboards": self.leaderboards,
            "differences": [difference._asdict() for difference in self.differences],
            "other_sql": self.other_sql,
            "ids": self.ids._asdict(),
            "notes": self.notes,
            "texts": None if self.texts is None else self.texts._asdict(),
        }

    @property
    def is_confirmed(self) -> bool:
        """True if all figures and ids are the same, and given texts are the certified ones."""
        n_differing = len(self.differences) + len(self.ids.differing)
        if self.texts is not None:
            n_differing += len(self.texts.differing)
        return n_differing == 0


def verify(file: Path, *, digest: str | None = None, texts: tuple[Path, ...] = ()) -> Verification:
    """Recompute and compare the figures of a certificate; compare the given texts with its hashes.

    `digest` is the published one, if it is known; `texts` are paths (see `given_texts`).

    Raises:
        UsageError: the file or a path does not exist.
        Damaged: the file is empty, or its digest is not that of its bytes or the published one, or
            its content is not that of a certificate.
    """
    for path in texts:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder; check the path")
    actual_digest = _check_digest(file, digest)
    with TemporaryDirectory(prefix="prbench-") as temporary:
        folder = Path(temporary)
        bundle = certifying.unpack_verified(file, folder)
        members = {member.name for member in bundle.files}
        _refuse_incomplete(file, members)
        about = bundle.meta
        key = {name: str(about.get(name)) for name in ("benchmark", "dataset_revision")}
        other_sql = _other_sql(folder, members)
        try:
            leaderboards, differences, notes = _recompute(
                folder, key, about, is_same_sql=not other_sql
            )
        except (
            WarehouseError,
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise Damaged(
                f"{file}: has rows that no warehouse can have ({error}); get it again"
            ) from error
        if not any(counts["figures"] or counts["differing"] for counts in leaderboards.values()):
            raise Damaged(f"{file}: has no figures; it was not written by `prbench certify`")
        checked_texts = None
        texts_by_hash: dict[str, str] = {}
        if texts:
            checked_texts, texts_by_hash = check_texts(folder, key, texts)
        ids = check_ids(folder, key, texts_by_hash)
    return Verification(
        digest=actual_digest,
        about=about,
        leaderboards=leaderboards,
        differences=differences,
        ids=ids,
        other_sql=other_sql,
        notes=notes,
        texts=checked_texts,
    )


def _check_digest(file: Path, published: str | None) -> str:
    """Return the digest of a certificate; refuse another than that of its bytes or `published`."""
    if not file.is_file():
        raise UsageError(f"{file}: is not a file; check the path")
    if not file.stat().st_size:
        raise Damaged(f"{file}: is empty; get it again")
    digest = verified_digest(file)
    if digest is None:
        raise Damaged(
            f"{file}: is damaged or not a certificate: its digest does not match; get it again"
        )
    if published is not None and published.strip().lower() != digest:
        raise Damaged(
            f"{file}: is not the published certificate: its digest is {digest}, not"
            f" {published.strip()}"
        )
    return digest


def _refuse_incomplete(file: Path, members: Collection[str]) -> None:
    """Refuse a certificate without rows or figures; one made earlier has no rules of coverage."""
    required = set(map(certifying.member_of, certifying.CERTIFIED)) - {_RULES_MEMBER}
    lacking = required.difference(members)
    if lacking:
        raise Damaged(f"{file}: lacks {min(lacking)}; it was not made by `prbench certify`")


def _other_sql(folder: Path, members: Iterable[str]) -> list[str]:
    """Return the members with another SQL than this version's, also those that only one has.

    The certificate's SQL is only compared and never run, because it could read files.
    """
    certified = {}
    for member in members:
        if member.startswith(f"{certifying.SQL}/"):
            certified[member] = (folder / member).read_bytes()
    own_sql = {name: text.encode() for name, text in certifying.model_texts().items()}
    return sorted({member for member, _ in own_sql.items() ^ certified.items()})


def _recompute(
    folder: Path,
    key: Mapping[str, str],
    about: About,
    *,
    is_same_sql: bool,
) -> tuple[dict[str, dict[str, int]], list[FigureDifference], list[str]]:
    """Recompute the figures from the rows, and compare them.

    Return the numbers for each leaderboard (see `Compared`), the figures that differ, and notes on
    what could not be checked (see `Verification`).
    """
    work = folder / "recomputed"
    work.mkdir()
    database = work / "figures.duckdb"
    files = {name: folder / certifying.member_of(name) for name in certifying.ROWS}
    has_rules = (folder / _RULES_MEMBER).exists()
    if not has_rules:
        del files[certifying.COVERAGE_RULES]
    load_rows(database, files, key)
    with Reader(database) as reader:
        _refuse_contradictory_verdict(reader)
        _refuse_duplicate_rows(reader)
        notes = [*_notes_on_weights(reader, about), *_notes_on_calls(reader, about)]
    skipped_columns: tuple[str, ...] = ()
    if not has_rules:
        skipped_columns = _LATEST_COLUMNS
        notes.append(
            "Made before current vintages depended on coverage: is_latest and latest ranks were not"
            " checked"
        )
    _compute_leaderboards(database, work, key)
    leaderboards = {}
    differences = []
    for name in certifying.LEADERBOARDS:
        leaderboards[name], leaderboard_differences = compare_leaderboard(
            name,
            folder,
            work,
            is_same_sql=is_same_sql,
            skipped_columns=skipped_columns,
        )
        differences += leaderboard_differences
    return leaderboards, differences, notes


def _compute_leaderboards(database: Path, folder: Path, key: Mapping[str, str]) -> None:
    """Compute the figures in a database of certified rows, and write them into a folder."""
    models = sql.leading_to(certifying.MODELS, certifying.ROWS)
    compute(database, models)
    with Reader(database) as reader:
        intervals = [*SCORE.fresh(reader), *TRIALS.fresh(reader)]
    # The intervals are computed from the figures, and then shown in them.
    dependent_models = sql.models_above({"measures"})
    compute(database, [model for model in models if model in dependent_models], intervals)
    with Reader(database) as reader:
        certifying.write_rows(reader, certifying.LEADERBOARDS, folder, key)


def _refuse_contradictory_verdict(reader: Reader) -> None:
    """Refuse a verdict whose value does not match its status."""
    for row in reader.rows(_CONTRADICTORY_VERDICT):
        status = json.dumps(row["status"])
        value = json.dumps(row["value"])
        raise ValueError(f"a verdict has the status {status} and the value {value}")


def _refuse_duplicate_rows(reader: Reader) -> None:
    """Refuse two rows of a table with the same key."""
    for table, key in certifying.KEYS.items():
        columns = ", ".join(key)
        if reader.rows(f"select 1 from {table} group by {columns} having count(*) > 1 limit 1"):
            raise ValueError(f"two rows of {table} have the same {columns}")


def _notes_on_weights(reader: Reader, about: About) -> list[str]:
    """Return a note if the bounds of the benchmark's weights are unknown here, or if the
    configuration only warns of weights out of bounds.

    Raises:
        ValueError: a weight is out of bounds, and the configuration does not only warn of it.
    """
    name = about["benchmark"]
    if name not in benchmark_names():
        return [f"The benchmark {name} is not known here, so weights were not checked"]
    bounds = load_benchmark(name).invariants.get("weight_range")
    if bounds is None:
        return []
    lowest = bounds["lowest"]
    highest = bounds["highest"]
    n_out_of_bounds = reader.value(_COUNT_WEIGHTS_OUT_OF_BOUNDS, [lowest, highest])
    if not n_out_of_bounds:
        return []
    problem = (
        f"{n_out_of_bounds} weights are not from {lowest:g} to {highest:g}, as those of {name} are"
    )
    if about["configuration"]["quality"]["policies"].get("weight_range") != "warn":
        raise ValueError(problem)
    return [f"{problem}; the certified configuration only warns of them"]


def _notes_on_calls(reader: Reader, about: About) -> list[str]:
    """Return a note if the manifest has no hash of the numbers of criteria in a call.

    Raises:
        ValueError: the numbers of the verdicts have another hash.
    """
    if certifying.CALLS not in about:
        return [
            "Made before certificates bound the number of criteria in a call (n_in_call): it was"
            " not checked"
        ]
    if about[certifying.CALLS] != reader.value(certifying.CALLS_QUERY.format(condition="true")):
        raise ValueError(
            "the numbers of criteria in a call (n_in_call) are not those that the manifest states"
        )
    return []


def verify_files(source: Path | Store) -> StageReport:
    """Verify all files of a backup, an export or the latest publication at a target, and return
    what it is.

    Raises:
        Damaged: it is none of these, or a file does not match its manifest.
    """
    location = published_in(location_of(source))
    bundle = read_bundle(location, *KINDS)
    verify_bundle(location, bundle)
    size = f"{len(bundle.files)} files ({bundle.n_bytes / 1e6:.1f} MB)"
    return StageReport(
        "verify", len(bundle.files), notes=[f"{bundle.kind}, {size} are as its manifest says"]
    )
