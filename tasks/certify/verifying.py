"""Verifying: the figures of a certificate computed again, from its rows alone, beside the certified ones.

Texts that are given are held against its hashes, and its ids against what they are hashes of.
"""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.benchmarks.base import Benchmark, RowError
from tasks.benchmarks.rows import as_text
from tasks.bundles.archive import verified_digest
from tasks.bundles.bundle import KINDS, Damaged, published_in, read_bundle, verify_bundle
from tasks.bundles.stores import Folder, Store
from tasks.certify import certifying
from tasks.certify.certifying import member_of, rows_of
from tasks.config.settings import Dataset
from tasks.dataset.rows import SUFFIXES, SourceError, read_rows
from tasks.dataset.source import open_source
from tasks.exports.tables import opened_export
from tasks.imports.files import given_rows, in_known_shape, number_of, refuse_unreadable, required_text, vintage_in
from tasks.measures import SCORE, TRIALS
from tasks.rules.conversation import build_messages
from tasks.rules.errors import UsageError
from tasks.rules.identity import BASE_VINTAGE, conversation_id, criterion_hash, response_id, verdict_id
from tasks.rules.records import Turn
from tasks.rules.text.characters import shows_nothing
from tasks.rules.text.numbers import some
from tasks.run.writing import StageReport
from warehouse import DATABASE, Derivation, Reader, WarehouseError

Of = tuple[Any, ...]
"""The kind of a text and what it is of: a task; a task and a position; task, model, trial and vintage."""
_RESPONSE = ("task_id", "conversation_id", "model", "model_config_hash", "trial", "vintage")
_VERDICT = (
    "criterion_id", "criterion_hash", "judge", "judge_config_hash", "template_hash", "grading", "judge_trial",
)  # fmt: skip
"""What the ids of rows are hashes of, beside the data set and the response."""
CONVERSATION, CRITERION, RESPONSE = "conversation", "criterion", "response"
OF_RESPONSE = ("task_id", "model", "trial", "vintage")
_STORED = ("conversation_turns", "criteria", "responses")
Row = Mapping[str, Any]
_SEVERAL = {CONVERSATION: "conversations", CRITERION: "criteria", RESPONSE: "responses"}
_NAMED = {
    CONVERSATION: "conversation of task {}", CRITERION: "criterion {1} of task {0}",
    RESPONSE: "response of {1} to task {0} (trial {2}, vintage {3})",
}  # fmt: skip


@dataclass(frozen=True)
class Texts:
    """What came of texts that were given.

    Attributes:
        n_checked: kind of text -> how many were compared with the certificate.
        n_certified: the same kinds -> how many are certified.
        differing: those that are not what is certified, in words.
        missing: the certified ones of these kinds that were not given, in words.
        n_others: how many given ones are of something that the certificate does not have.
    """

    n_checked: dict[str, int]
    n_certified: dict[str, int]
    differing: list[str]
    missing: list[str]
    n_others: int

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        counts = ", ".join(f"{n} of {self.n_certified[kind]} {_SEVERAL[kind]}" for kind, n in self.n_checked.items())
        outcome = f"{len(self.differing)} differ" if self.differing else "all match"
        found = [f"texts: {counts or 'nothing'} checked; {outcome}"]
        if self.missing:
            found.append(f"not given: {some(self.missing)}")
        if self.n_others:
            found.append(f"{self.n_others} given texts are of tasks or models that are not certified")
        return found


@dataclass(frozen=True)
class Ids:
    """What came of computing ids again from what they are hashes of.

    Attributes:
        n_checked: kind of row -> how many ids were computed.
        n_unchecked: how many verdicts are on responses whose texts were not given.
        differing: the rows whose ids are others, in words.
    """

    n_checked: dict[str, int]
    n_unchecked: int
    differing: list[str]

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        counts = " and ".join(f"{n} {kind}" for kind, n in self.n_checked.items())
        outcome = f"{len(self.differing)} differ" if self.differing else "all equal"
        found = [f"ids: of {counts} recomputed; {outcome}"]
        if self.n_unchecked:
            found.append(
                f"ids: of {self.n_unchecked} verdicts not recomputed, so the judge of these may be another one; that "
                "needs the texts of their responses (--texts)"
            )
        return found


def check_texts(folder: Path, benchmark: str, revision: str, texts: Iterable[Path]) -> tuple[Texts, dict[str, str]]:
    """Compare given texts with the hashes of an unpacked certificate; with the certified responses by their hashes."""
    certified = _certified(folder)
    checked: dict[Of, None] = {}
    differing: dict[str, None] = {}
    n_others, by_hash = 0, {}
    for given in (given for path in texts for given in given_texts(path, benchmark, revision)):
        if (values := certified.get(given.of)) is None:
            n_others += 1
            continue
        checked[given.of] = None
        if given.value not in values:
            differing[f"{given.where}: {_named(given.of)} is not what is certified"] = None
        elif given.text is not None:
            by_hash[given.value] = given.text
    n_checked = Counter(kind for kind, *_ in checked)
    missing = [_named(of) for of in certified if of[0] in n_checked and of not in checked]
    n_certified = {kind: n for kind, n in Counter(kind for kind, *_ in certified).items() if kind in n_checked}
    return Texts(dict(n_checked), n_certified, list(differing), missing, n_others), by_hash


def check_ids(folder: Path, benchmark: str, revision: str, texts: Mapping[str, str]) -> Ids:
    """Compute the ids of an unpacked certificate again; those of verdicts need the responses, given by their hashes."""
    differing: list[str] = []
    hashes: dict[str, str] = {}
    for row in rows_of(folder / member_of("responses")):
        hashes[row["response_id"]] = row["text_sha256"]
        if row["response_id"] != response_id(benchmark, revision, *(row[name] for name in _RESPONSE)):
            named = _named((RESPONSE, *(row[name] for name in OF_RESPONSE)))
            differing.append(f"{named} does not have the id of its task, conversation, model, trial and vintage")
    n_checked, n_unchecked = 0, 0
    for row in rows_of(folder / member_of("verdicts")):
        text = texts.get(hashes.get(row["response_id"], ""))
        if text is None:
            n_unchecked += 1
            continue
        n_checked += 1
        if row["verdict_id"] != verdict_id(row["response_id"], text, *(row[name] for name in _VERDICT)):
            named = f"verdict of {row['judge']} on criterion {row['criterion_id']} of task {row['task_id']}"
            differing.append(f"{named} does not have the id of its response, criterion, judge, template and grading")
    return Ids({"responses": len(hashes), "verdicts": n_checked}, n_unchecked, differing)


def _certified(folder: Path) -> dict[Of, set[Any]]:
    """What a text is of -> what is certified of it; one label of imported responses may be of several."""
    found: dict[Of, set[Any]] = defaultdict(set)
    for row in rows_of(folder / member_of("tasks")):
        found[CONVERSATION, row["task_id"]].add(row["conversation_id"])
    for row in rows_of(folder / member_of("criteria")):
        value = tuple(row[name] for name in ("criterion_id", "content_hash", "category", "weight", "severity"))
        found[CRITERION, row["task_id"], row["position"]].add(value)
    for row in rows_of(folder / member_of("responses")):
        found[RESPONSE, *(row[name] for name in OF_RESPONSE)].add(row["text_sha256"])
    return found


def _named(of: Of) -> str:
    return _NAMED[of[0]].format(*of[1:])


class Given(NamedTuple):
    """A text: what it is of, what a certificate would say of it, where it was, and a response itself."""

    of: Of
    value: Any
    where: str
    text: str | None = None


def given_texts(path: Path, benchmark: str, revision: str) -> Iterator[Given]:
    """The texts in a data-set file or folder, a file of responses, a folder of `prbench export`, or a warehouse.

    Raises:
        UsageError: there is nothing of that name, or it is none of these.
        PipelineError: it cannot be read.
    """
    if (path / DATABASE).is_file():
        with Reader(path / DATABASE) as reader:
            key = {"benchmark": benchmark, "dataset_revision": revision}
            return _of_tables(str(path), {name: reader.select(name, **key) for name in _STORED})
    if (path / "manifest.json").is_file():
        return _of_tables(str(path), _of_export(path, benchmark, revision))
    adapter = load_benchmark(benchmark)
    is_rows = path.suffix in SUFFIXES and path.is_file()
    if path.is_dir() or (is_rows and not adapter.missing_columns(set(next(iter(read_rows(path)), {})))):
        return _of_data_set(path, adapter)
    refuse_unreadable(path)
    return _of_responses(path, adapter)


def _of_data_set(path: Path, benchmark: Benchmark) -> Iterator[Given]:
    source = open_source(Dataset(source=str(path)), benchmark)
    for split in source.splits:
        for number, row in enumerate(source.rows(split), start=1):
            where = f"{source.files[split]}: row {number}"
            try:
                task = benchmark.parse_row(row)
            except RowError as error:
                raise SourceError(f"{where}: {error}; correct or remove the row") from error
            yield Given((CONVERSATION, task.task_id), task.conversation_id, where)
            for each in task.criteria:
                value = (each.criterion_id, each.content_hash, each.category, each.weight, each.severity)
                yield Given((CRITERION, task.task_id, each.position), value, where)


def _of_responses(path: Path, benchmark: Benchmark) -> Iterator[Given]:
    for where, row in in_known_shape(benchmark, given_rows(path)):
        if "response" not in row:
            lacking = f"has neither `response` nor all columns of {benchmark.name}"
            raise UsageError(f"{where}: {lacking}; name a file with responses or a data set")
        of = (
            RESPONSE, required_text(where, row, "task"), required_text(where, row, "model"),
            number_of(where, row, "trial"), vintage_in(row) or BASE_VINTAGE,
        )  # fmt: skip
        text = as_text(row["response"])
        yield Given(of, _hash(text), where, text)


def _hash(text: str | None) -> str | None:
    """A response's hash; one that shows nothing is a failed response, which has no text."""
    return None if text is None or shows_nothing(text) else hashlib.sha256(text.encode()).hexdigest()


def _of_tables(where: str, tables: Mapping[str, Iterable[Row]]) -> Iterator[Given]:
    """Texts as a warehouse holds them."""
    turns = sorted(tables["conversation_turns"], key=itemgetter("task_id", "position"))
    for task_id, of_task in groupby(turns, key=itemgetter("task_id")):
        conversation = [Turn(row["prompt"], tuple(row["reference_texts"] or ()), row["response"]) for row in of_task]
        yield Given((CONVERSATION, task_id), conversation_id(build_messages(conversation)), where)
    for row in tables["criteria"]:
        value = (row["criterion_id"], criterion_hash(row["title"]), row["category"], row["weight"], row["severity"])
        yield Given((CRITERION, row["task_id"], row["position"]), value, where)
    for row in tables["responses"]:
        of = (RESPONSE, *(row[name] for name in OF_RESPONSE))
        yield Given(of, _hash(row["text"]), where, row["text"])


def _of_export(path: Path, benchmark: str, revision: str) -> dict[str, Iterable[Row]]:
    with opened_export(path) as export:
        return {
            name: [
                row for table in export.tables if table.name == name for file in table.files
                for row in read_rows(export.folder / file)
                if (row["benchmark"], row["dataset_revision"]) == (benchmark, revision)
            ]
            for name in _STORED
        }  # fmt: skip


KEY = (
    "split", "is_own_hard", "breakdown", "label", "judge", "judge_config_hash", "template_hash", "grading",
    "judge_trial", "vintage", "model", "model_config_hash", "score_name",
)  # fmt: skip
"""The columns that say what a row of a leaderboard is about."""
_CLOSE = 1e-9
"""The share of a mean or sum by which its last digits may differ: they depend on the order of adding."""
_CLOSE_ENDS = 1e-6
"""The same for ends of intervals, since resamples are computed in single precision."""
_DRAWN = ("ci_low", "ci_high")
_RECOMPUTED = "recomputed"
_COUNTS = ("n_rows", "n_figures")
_WEIGHTS = "weight_range"
_UNLIKE = """
    select status, value
    from verdicts
    where value is distinct from case status when 'met' then 1 when 'partial' then 0.5 when 'unmet' then 0 end
    limit 1
"""
"""A verdict whose value is not that of its status; failures have none."""


@dataclass(frozen=True)
class Difference:
    """A figure that comes out differently; `column` is None where the whole row is on one side only."""

    leaderboard: str
    row: dict[str, Any]
    column: str | None
    certified: Any
    recomputed: Any

    @property
    def values(self) -> tuple[Any, Any]:
        """Both values, the certified one first."""
        return self.certified, self.recomputed


@dataclass(frozen=True)
class Compared:
    """How many rows and figures were compared, and those that differ."""

    n_rows: int
    n_figures: int
    differences: list[Difference]


def compare(leaderboard: str, certified: Path, recomputed: Path, *, is_same_sql: bool) -> Compared:
    """Compare the rows of a leaderboard, each a line; by other SQL they may have columns more than are certified.

    Raises:
        ValueError: a row is no JSON, or two rows are about the same.
        TypeError: a row is no object.
    """
    ours, theirs = _by_key(recomputed), _by_key(certified)
    n_figures, found = 0, []
    for key in sorted(theirs.keys() | ours.keys(), key=repr):
        stated, made = theirs.get(key), ours.get(key)
        about = {column: value for column, value in (stated or made or {}).items() if column in KEY}
        if stated is None or made is None:
            sides = ("present", "absent") if made is None else ("absent", "present")
            found.append(Difference(leaderboard, about, None, *sides))
            continue
        columns = [column for column in dict.fromkeys([*stated, *(made if is_same_sql else ())]) if column not in KEY]
        n_figures += len(columns)
        for column in columns:
            if not is_same(column, stated.get(column), made.get(column)):
                found.append(Difference(leaderboard, about, column, stated.get(column), made.get(column)))
    return Compared(len(theirs), n_figures, found)


def _by_key(path: Path) -> dict[tuple[Any, ...], Row]:
    rows: dict[tuple[Any, ...], Row] = {}
    for row in certifying.rows_of(path):
        if not isinstance(row, dict):
            raise TypeError("a row of a leaderboard is no object")
        key = tuple(json.dumps(row.get(column)) for column in KEY)
        if key in rows:
            raise ValueError("two rows of a leaderboard are about the same")
        rows[key] = row
    return rows


def is_same(column: str, stated: Any, made: Any) -> bool:
    """Whether a figure is the same but for the last digits of a mean."""
    if type(stated) is float and type(made) is float:
        close = _CLOSE_ENDS if column.endswith(_DRAWN) else _CLOSE
        return math.isclose(stated, made, rel_tol=close, abs_tol=close)
    return type(stated) is type(made) and bool(stated == made)


@dataclass(frozen=True)
class Verification:
    """What came of verifying a certificate.

    Attributes:
        digest: that of the file, which its bytes have.
        about: benchmark, revision and versions, as the certificate says.
        compared: leaderboard -> its figures beside those computed here.
        other_sql: the models whose SQL here is not that of the certificate.
        ids: what computing ids again came to.
        notes: what could not be checked of weights, in words.
        texts: what the texts came to that were given; None without any.
    """

    digest: str
    about: dict[str, Any]
    compared: dict[str, Compared]
    ids: Ids
    other_sql: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    texts: Texts | None = None

    @property
    def differences(self) -> list[Difference]:
        """The figures of all leaderboards that come out differently."""
        return [each for compared in self.compared.values() for each in compared.differences]

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        n_rows, n_figures = (sum(getattr(each, name) for each in self.compared.values()) for name in _COUNTS)
        filled = sum(1 for each in self.compared.values() if each.n_rows)
        n_other = len(self.differences)
        outcome = f"{n_other} differ" if n_other else "all equal"
        found = [
            f"verify: certificate, {n_figures} figures in {n_rows} rows of {filled} leaderboards recomputed; {outcome}"
        ]
        if self.other_sql:
            names = ", ".join(name.removeprefix("sql/").removesuffix(".sql") for name in self.other_sql)
            found.append(f"The certificate has other SQL than this version, whose SQL was used: {names}")
        if (drawn := self.about.get("intervals")) != certifying.INTERVALS:
            found.append(f"The certificate's intervals were drawn in another way than this version's: {drawn}")
        texts = self.texts.lines if self.texts else ()
        return [*found, *self.notes, *self.ids.lines, *texts, f"digest: {self.digest}"]

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines."""
        return {
            "is_confirmed": self.is_confirmed, "kind": "certificate", "digest": self.digest, **self.about,
            "leaderboards": {
                name: {"rows": each.n_rows, "figures": each.n_figures, "differing": len(each.differences)}
                for name, each in self.compared.items()
            }, "differences": [asdict(each) for each in self.differences], "other_sql": self.other_sql,
            "ids": asdict(self.ids), "notes": self.notes, "texts": None if self.texts is None else asdict(self.texts),
        }  # fmt: skip

    @property
    def is_confirmed(self) -> bool:
        """Whether all figures and ids are the same, and all given texts are those of the certificate."""
        return not (self.differences or self.ids.differing or (self.texts and self.texts.differing))


def verify(file: Path, *, digest: str | None = None, texts: tuple[Path, ...] = ()) -> Verification:
    """Compute the figures of a certificate again and compare them; with `texts`, check these against its hashes too.

    Raises:
        UsageError: there is no such file.
        Refused: its bytes do not have its digest, or not the one that was published.
        Damaged: it does not hold what a certificate does.
    """
    if not file.is_file():
        raise UsageError(f"{file}: is not a file; check the path")
    actual = verified_digest(file, digest)
    with TemporaryDirectory(prefix="prbench-") as temporary:
        folder = Path(temporary)
        bundle = certifying.opened(file, folder)
        names, about = {each.name for each in bundle.files}, bundle.meta
        needed = {certifying.member_of(name) for name in (*certifying.ROWS, certifying.RUNS, *certifying.LEADERBOARDS)}
        if lacking := needed - names:
            raise Damaged(f"{file}: lacks {min(lacking)}; it was not made by `prbench certify`")
        other = _other_sql(folder, names)
        try:
            compared, notes = _recomputed(folder, about, is_same_sql=not other)
        except (WarehouseError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            raise Damaged(f"{file}: holds rows that no warehouse has ({error}); get it again") from error
        if not any(each.n_figures or each.differences for each in compared.values()):
            raise Damaged(f"{file}: holds no figures; it was not made by `prbench certify`")
        key = about["benchmark"], about["dataset_revision"]
        checked, by_hash = check_texts(folder, *key, texts) if texts else (None, {})
        ids = check_ids(folder, *key, by_hash)
    return Verification(actual, about, compared, ids, other, notes, checked)


def verify_files(source: Path | Store) -> StageReport:
    """Read all files of a backup, an export or the latest publication at a target, and say which of these it is.

    Raises:
        Damaged: it is none of these, or a file is not what its manifest says.
    """
    place = published_in(Folder(source) if isinstance(source, Path) else source)
    bundle = read_bundle(place, *KINDS)
    verify_bundle(place, bundle)
    size = f"{len(bundle.files)} files ({bundle.n_bytes / 1e6:.1f} MB)"
    return StageReport("verify", len(bundle.files), notes=[f"{bundle.kind}, {size} are as its manifest says"])


def _other_sql(folder: Path, names: Iterable[str]) -> list[str]:
    """The models whose SQL is not the same here and in the certificate.

    SQL from elsewhere is read and never run: it could read files.
    """
    own = {name: text.encode() for name, text in certifying.model_texts().items()}
    certified = {name: (folder / name).read_bytes() for name in names if name.startswith(f"{certifying.SQL}/")}
    return sorted(name for name in own.keys() | certified.keys() if own.get(name) != certified.get(name))


def _recomputed(
    folder: Path, manifest: Mapping[str, Any], *, is_same_sql: bool
) -> tuple[dict[str, Compared], list[str]]:
    benchmark, revision = manifest["benchmark"], manifest["dataset_revision"]
    (made := folder / _RECOMPUTED).mkdir()
    derivation = Derivation(made / "figures.duckdb", certifying.MODELS)
    same = {"benchmark": benchmark, "dataset_revision": revision}
    derivation.take_in({name: folder / certifying.member_of(name) for name in certifying.ROWS}, same)
    with derivation.reader() as reader:
        _refuse_unlike(reader)
        notes = _refuse_odd_weights(reader, manifest)
    derivation.compute()
    with derivation.reader() as reader:
        intervals = [*SCORE.fresh(reader), *TRIALS.fresh(reader)]
    derivation.add("measures", intervals)
    with derivation.reader() as reader:
        certifying.write_rows(reader, certifying.LEADERBOARDS, made, benchmark, revision)
    members = {name: certifying.member_of(name) for name in certifying.LEADERBOARDS}
    return {
        name: compare(name, folder / member, made / member, is_same_sql=is_same_sql) for name, member in members.items()
    }, notes


def _refuse_unlike(reader: Reader) -> None:
    for row in reader.rows(_UNLIKE):
        status, value = (json.dumps(row[name]) for name in ("status", "value"))
        raise ValueError(f"a verdict has the status {status} and the value {value}")
    for name, key in certifying.KEYS.items():
        if reader.rows(f"select 1 from {name} group by {', '.join(key)} having count(*) > 1 limit 1"):
            own = ", ".join(column for column in key if column not in {"benchmark", "dataset_revision"})
            raise ValueError(f"two rows of {name} have the same {own}")


def _refuse_odd_weights(reader: Reader, manifest: Mapping[str, Any]) -> list[str]:
    """Refuse weights that the benchmark does not have; where it is not known here, or only warns, a line says so."""
    name = manifest["benchmark"]
    if name not in benchmark_names():
        return [f"The benchmark {name} is not known here, so weights were not checked"]
    bounds = load_benchmark(name).invariants.get(_WEIGHTS)
    if bounds is None:
        return []
    of_admitted = "from criteria join tasks using (task_id) where is_admitted and weight not between ? and ?"
    n_odd = reader.value(f"select count(*) {of_admitted}", [bounds["lowest"], bounds["highest"]])
    said = f"{n_odd} weights are not from {bounds['lowest']:g} to {bounds['highest']:g}, as those of {name} are"
    if n_odd and manifest["configuration"]["quality"]["policies"].get(_WEIGHTS) != "warn":
        raise ValueError(said)
    return [f"{said}; the certified configuration only warns of them"] if n_odd else []
