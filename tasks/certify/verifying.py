"""Verification of a certificate: its figures are recomputed from its rows alone, and compared."""

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import sql
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.bundles.bundle import KINDS, Damaged, published_in, read_bundle, verify_bundle
from tasks.bundles.stores import Folder, Store
from tasks.certify import certifying
from tasks.certify.texts import Ids, Row, Texts, check_ids, check_texts
from tasks.measures import SCORE, TRIALS
from tasks.rules.errors import UsageError
from tasks.run.writing import StageReport
from warehouse import Reader, WarehouseError
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
_OF_LATEST = (
    "is_latest",
    "latest_rank",
    "latest_rank_low",
    "latest_rank_high",
    "n_tasks_latest_ranked",
)
"""The columns that depend on which vintage of a model is its current one."""
_RULES = certifying.member_of(certifying.COVERAGE_RULES)
_UNLIKE = """
    select status, value
    from verdicts
    where value is distinct from case status when 'met' then 1 when 'partial' then 0.5 when 'unmet' then 0 end
    limit 1
"""
"""Selects a verdict whose value does not match its status; a failure has no value."""


class FigureDifference(NamedTuple):
    """A certified figure that differs from the recomputed one; `column` is None if one side lacks
    the whole row.
    """

    leaderboard: str
    row: dict[str, Any]
    column: str | None
    certified: Any
    recomputed: Any


Compared = tuple[dict[str, int], list[FigureDifference]]
"""The number of certified `rows`, of compared `figures` and of `differing` ones; and these."""


def compare(
    leaderboard: str,
    certified: Path,
    recomputed: Path,
    *,
    is_same_sql: bool,
    left_out: Collection[str] = (),
) -> Compared:
    """Compare two files with the rows of a leaderboard; unless both have the same SQL, only
    certified columns count.

    The columns `left_out` are not compared.

    Raises:
        ValueError: a row is not JSON, or two rows have the same key.
        TypeError: a row is not an object.
    """
    own_rows = _by_key(recomputed)
    certified_rows = _by_key(certified)
    n_figures = 0
    differences = []
    for key in sorted(certified_rows.keys() | own_rows.keys(), key=repr):
        stated = certified_rows.get(key)
        own = own_rows.get(key)
        about = {column: value for column, value in (stated or own or {}).items() if column in KEY}
        if stated is None or own is None:
            sides = ("present", "absent") if own is None else ("absent", "present")
            differences.append(FigureDifference(leaderboard, about, None, *sides))
            continue
        every = dict.fromkeys([*stated, *(own if is_same_sql else ())])
        columns = [column for column in every if column not in KEY and column not in left_out]
        n_figures += len(columns)
        figures = [(column, stated.get(column), own.get(column)) for column in columns]
        differences += [
            FigureDifference(leaderboard, about, *each) for each in figures if not is_same(*each)
        ]
    return {
        "rows": len(certified_rows),
        "figures": n_figures,
        "differing": len(differences),
    }, differences


def _by_key(path: Path) -> dict[tuple[Any, ...], Row]:
    rows: dict[tuple[Any, ...], Row] = {}
    for row in certifying.rows_of(path):
        if not isinstance(row, dict):
            raise TypeError("a row of a leaderboard is not an object")
        key = tuple(json.dumps(row.get(column)) for column in KEY)
        if key in rows:
            raise ValueError("two rows of a leaderboard have the same key")
        rows[key] = row
    return rows


def is_same(column: str, stated: Any, own: Any) -> bool:
    """Return whether two figures are equal, apart from the last digits."""
    if type(stated) is float and type(own) is float:
        # Sums depend on the order of adding; the ends of intervals are computed in single
        # precision.
        close = 1e-6 if column.endswith(("ci_low", "ci_high")) else 1e-9
        return math.isclose(stated, own, rel_tol=close, abs_tol=close)
    return type(stated) is type(own) and bool(stated == own)


class Verification(NamedTuple):
    """The result of verifying a certificate.

    Attributes:
        digest: the digest of the file, which matches its bytes.
        about: benchmark, revision and versions, as the certificate states them.
        leaderboards: leaderboard -> numbers of certified rows, and of compared and differing
            figures.
        differences: the figures of all leaderboards that differ.
        ids: the result of recomputing ids.
        other_sql: the models whose SQL in the certificate is not that of this version.
        notes: notes on weights that could not be checked.
        texts: the result of comparing given texts; None without any.
    """

    digest: str
    about: dict[str, Any]
    leaderboards: dict[str, dict[str, int]]
    differences: list[FigureDifference]
    ids: Ids
    other_sql: list[str]
    notes: list[str]
    texts: Texts | None

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        filled = [each for each in self.leaderboards.values() if each["rows"]]
        n_rows, n_figures = (sum(each[name] for each in filled) for name in ("rows", "figures"))
        outcome = f"{len(self.differences)} differ" if self.differences else "all equal"
        rows = f"{n_figures} figures in {n_rows} rows of {len(filled)} leaderboards"
        lines = [f"verify: certificate, {rows} recomputed; {outcome}"]
        if self.other_sql:
            names = ", ".join(
                name.removeprefix("sql/").removesuffix(".sql") for name in self.other_sql
            )
            lines.append(
                f"The certificate has other SQL than this version, whose SQL was used: {names}"
            )
        intervals = self.about.get("intervals")
        if intervals != certifying.INTERVALS:
            lines.append(
                f"The certificate's intervals have another method than this version's: {intervals}"
            )
        texts = self.texts.lines if self.texts else ()
        return [*lines, *self.notes, *self.ids.lines, *texts, f"digest: {self.digest}"]

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            "is_confirmed": self.is_confirmed,
            "kind": "certificate",
            "digest": self.digest,
            **self.about,
            "leaderboards": self.leaderboards,
            "differences": [each._asdict() for each in self.differences],
            "other_sql": self.other_sql,
            "ids": self.ids._asdict(),
            "notes": self.notes,
            "texts": self.texts and self.texts._asdict(),
        }

    @property
    def is_confirmed(self) -> bool:
        """True if all figures and ids are the same, and no given text differs from the certified
        one.
        """
        return not (self.differences or self.ids.differing or (self.texts and self.texts.differing))


def verify(file: Path, *, digest: str | None = None, texts: tuple[Path, ...] = ()) -> Verification:
    """Recompute and compare the figures of a certificate; compare the given texts with its hashes.

    Raises:
        UsageError: the file does not exist, or is empty.
        Damaged: its digest is not that of its bytes or the published one, or its content is not
            that of a certificate.
    """
    if not file.is_file() or not file.stat().st_size:
        raise UsageError(f"{file}: is not a file; check the path")
    actual = verified_digest(file)
    if actual is None:
        raise Damaged(
            f"{file}: is damaged or not a certificate: its digest does not match; get it again"
        )
    if digest is not None and digest.strip().lower() != actual:
        raise Damaged(
            f"{file}: is not the published certificate: its digest is {actual}, not"
            f" {digest.strip()}"
        )
    with TemporaryDirectory(prefix="prbench-") as temporary:
        folder = Path(temporary)
        bundle = certifying.opened(file, folder)
        names = {each.name for each in bundle.files}
        about = bundle.meta
        key = {name: str(about.get(name)) for name in ("benchmark", "dataset_revision")}
        needed = {
            certifying.member_of(name)
            for name in (*certifying.ROWS, certifying.RUNS, *certifying.LEADERBOARDS)
        }
        lacking = needed - names - {_RULES}
        if lacking:
            raise Damaged(f"{file}: lacks {min(lacking)}; it was not made by `prbench certify`")
        # The certificate's SQL is only compared and never run, because it could read files.
        own = {name: text.encode() for name, text in certifying.model_texts().items()}
        certified = {
            name: (folder / name).read_bytes()
            for name in names
            if name.startswith(f"{certifying.SQL}/")
        }
        other = sorted(
            name for name in own.keys() | certified.keys() if own.get(name) != certified.get(name)
        )
        try:
            compared, notes = _recomputed(folder, key, about, is_same_sql=not other)
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
        leaderboards = {name: counts for name, (counts, _) in compared.items()}
        if not any(each["figures"] or each["differing"] for each in leaderboards.values()):
            raise Damaged(f"{file}: has no figures; it was not written by `prbench certify`")
        checked, by_hash = check_texts(folder, key, texts) if texts else (None, {})
        ids = check_ids(folder, key, by_hash)
    differences = [each for _, of_leaderboard in compared.values() for each in of_leaderboard]
    return Verification(actual, about, leaderboards, differences, ids, other, notes, checked)


def verify_files(source: Path | Store) -> StageReport:
    """Verify all files of a backup, an export or the latest publication at a target, and return
    what it is.

    Raises:
        Damaged: it is none of these, or a file does not match its manifest.
    """
    location = published_in(Folder(source) if isinstance(source, Path) else source)
    bundle = read_bundle(location, *KINDS)
    verify_bundle(location, bundle)
    size = f"{len(bundle.files)} files ({bundle.n_bytes / 1e6:.1f} MB)"
    return StageReport(
        "verify", len(bundle.files), notes=[f"{bundle.kind}, {size} are as its manifest says"]
    )


def _recomputed(
    folder: Path, key: Mapping[str, str], manifest: Mapping[str, Any], *, is_same_sql: bool
) -> tuple[dict[str, Compared], list[str]]:
    (work := folder / "recomputed").mkdir()
    files = {name: folder / certifying.member_of(name) for name in certifying.ROWS}
    has_rules = (folder / _RULES).exists()
    if not has_rules:
        del files[certifying.COVERAGE_RULES]
    load_rows(database := work / "figures.duckdb", files, key)
    with Reader(database) as reader:
        notes = [*_refuse_odd(reader, manifest), *_refuse_other_calls(reader, manifest)]
    if not has_rules:
        notes.append(
            "Made before current vintages depended on coverage: is_latest and latest ranks were not"
            " checked"
        )
    models = sql.leading_to(certifying.MODELS, certifying.ROWS)
    compute(database, models)
    with Reader(database) as reader:
        intervals = [*SCORE.fresh(reader), *TRIALS.fresh(reader)]
    with_intervals = {model.name for model in sql.behind({"measures"}) if model.kind != "step"}
    compute(database, [model for model in models if model.name in with_intervals], intervals)
    with Reader(database) as reader:
        certifying.write_rows(reader, certifying.LEADERBOARDS, work, key)
    compared = {
        name: compare(
            name,
            *(each / certifying.member_of(name) for each in (folder, work)),
            is_same_sql=is_same_sql,
            left_out=() if has_rules else _OF_LATEST,
        )
        for name in certifying.LEADERBOARDS
    }
    return compared, notes


def _refuse_odd(reader: Reader, manifest: Mapping[str, Any]) -> list[str]:
    """Refuse verdicts whose value does not match their status, duplicate rows, and weights out of
    bounds.

    Return a note if the benchmark's bounds are unknown here, or if the configuration only warns of
    such weights.
    """
    for row in reader.rows(_UNLIKE):
        status, value = (json.dumps(row[name]) for name in ("status", "value"))
        raise ValueError(f"a verdict has the status {status} and the value {value}")
    for table, key in certifying.KEYS.items():
        if reader.rows(
            f"select 1 from {table} group by {', '.join(key)} having count(*) > 1 limit 1"
        ):
            raise ValueError(f"two rows of {table} have the same {', '.join(key)}")
    name = manifest["benchmark"]
    if name not in benchmark_names():
        return [f"The benchmark {name} is not known here, so weights were not checked"]
    bounds = load_benchmark(name).invariants.get("weight_range")
    if bounds is None:
        return []
    of_admitted = (
        "from criteria join tasks using (task_id) where is_admitted and weight not between ? and ?"
    )
    n_odd = reader.value(f"select count(*) {of_admitted}", [bounds["lowest"], bounds["highest"]])
    problem = (
        f"{n_odd} weights are not from {bounds['lowest']:g} to {bounds['highest']:g}, as those of"
        f" {name} are"
    )
    if n_odd and manifest["configuration"]["quality"]["policies"].get("weight_range") != "warn":
        raise ValueError(problem)
    return [f"{problem}; the certified configuration only warns of them"] if n_odd else []


def _refuse_other_calls(reader: Reader, manifest: Mapping[str, Any]) -> list[str]:
    """Refuse verdicts whose `n_in_call` is not that of the manifest; return a note if the manifest
    states none.
    """
    if certifying.CALLS not in manifest:
        return [
            "Made before certificates bound the number of criteria in a call (n_in_call): it was"
            " not checked"
        ]
    if manifest[certifying.CALLS] != reader.value(certifying.CALLS_QUERY.format(condition="true")):
        raise ValueError(
            "the numbers of criteria in a call (n_in_call) are not those that the manifest states"
        )
    return []
