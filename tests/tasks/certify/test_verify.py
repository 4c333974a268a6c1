"""Verifying finds every changed byte of a certificate, and every figure that does not follow from
its rows.
"""

import hashlib
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.aggregate import aggregate
from tasks.bundles.bundle import Damaged
from tasks.certify.certifying import LEADERBOARDS, unpack_verified
from tasks.certify.texts import check_texts
from tasks.certify.verifying import verify
from tasks.config.job import DataRevision
from tasks.dataset.foreign_files import FileTooLarge
from tasks.exports.tables import export_tables
from tasks.rules.errors import UsageError
from tests.kit import Row, job_on, one_line, response, write_jsonl, written
from tests.tasks.certify import conftest as certificates
from tests.tasks.certify.checker import Figures, check, check_calls, check_ids, read
from tests.tasks.certify.conftest import Members, forged, members_of, with_row
from tests.tasks.report.synthetic.research import RESAMPLES
from tests.warehouse.parts import flip
from tests.worlds import RESPONSES, SAMPLE


def test_all_figures_are_recomputed_and_equal_if_the_digest_is_the_published_one(
    certificate,
):
    digest = certificate.read_bytes()[-64:].decode()

    result = verify(certificate, digest=digest.upper())

    figures = "5156 figures in 124 rows of 3 leaderboards recomputed; all equal"
    assert result.is_confirmed
    assert f"certificate, {figures}" in result.lines[0]
    assert not any("another method" in line for line in result.lines)
    with pytest.raises(Damaged, match="is not the published certificate"):
        verify(certificate, digest="0" * 64)


def test_a_certificate_with_other_intervals_is_verified_and_they_are_named(
    certificate, tmp_path
):
    def older(manifest):
        manifest["intervals"]["method"] = "bootstrap-t-2"

    result = verify(
        forged(certificate, tmp_path / "older.zip", lambda _: None, older)
    )

    [line] = [line for line in result.lines if "bootstrap-t-2" in line]
    assert result.is_confirmed
    assert "have another method than this version's" in line


def test_a_certificate_with_a_flipped_bit_is_refused(certificate, tmp_path):
    dice = random.Random(7)
    n_bytes = certificate.stat().st_size
    offsets = [0, n_bytes - 65, n_bytes - 64, n_bytes - 1]

    for offset in (*offsets, *dice.sample(range(n_bytes), 20)):
        copy = Path(shutil.copy(certificate, tmp_path))
        flip(copy, offset, bit=dice.randrange(8))
        with pytest.raises(Damaged, match="its digest does not match"):
            verify(copy)


@pytest.fixture
def with_changed_verdict(research: Path, tmp_path) -> Path:
    """A forgery in which a criterion that was met is not met."""
    verdicts = members_of(research)["rows/verdicts.jsonl"].splitlines()
    number = next(number for number, line in enumerate(verdicts) if b'"met"' in line)
    change = with_row("rows/verdicts.jsonl", number, status="unmet", value=0)
    return forged(research, tmp_path / "forgery.zip", change)


@pytest.mark.usefixtures("resampling_less")
def test_a_true_certificate_is_confirmed_and_the_checker_agrees(research):
    n_checked, differences = check(research, resamples=RESAMPLES)

    assert differences == []
    assert n_checked > 50_000
    assert verify(research).is_confirmed


@pytest.mark.usefixtures("resampling_less")
def test_a_changed_verdict_shows_in_the_figures_in_which_the_checker_sees_it(
    with_changed_verdict,
):
    figures = Figures(*read(with_changed_verdict), RESAMPLES)

    _, wrong_figures = check(with_changed_verdict, resamples=RESAMPLES)
    differences = verify(with_changed_verdict).differences

    wrong_cells = {figure[:3] for figure in wrong_figures}
    columns = {"mean_score", "rank", "coverage", "n_tasks"}
    columns.update(name for _, _, name in wrong_cells)
    differing_cells = set()
    for difference in differences:
        is_checked = difference.leaderboard != "severity_leaderboard"
        if is_checked and difference.column in columns:
            row = figures.about(difference.row)
            differing_cells.add((difference.leaderboard, row, difference.column))
    assert differing_cells == wrong_cells
    assert len(differing_cells) > 20


def test_other_sql_is_named_and_never_run(certificate, tmp_path):
    stolen = tmp_path / "stolen"

    def change(members):
        members["sql/leaderboard.sql"] += b"-- a comment\n"
        members["sql/intermediate.more.sql"] = (
            f"copy (select 1) to '{stolen}'".encode()
        )

    result = verify(forged(certificate, tmp_path / "other.zip", change))

    assert result.other_sql == ["sql/intermediate.more.sql", "sql/leaderboard.sql"]
    notice = "other SQL than this version, whose SQL was used"
    assert f"{notice}: intermediate.more, leaderboard" in result.lines[1]
    assert result.is_confirmed
    assert not stolen.exists()


@pytest.fixture(scope="module")
def in_groups(tmp_path_factory) -> Path:
    """A certificate of judges that decide three criteria in a call."""
    folder = tmp_path_factory.mktemp("groups")
    rows = certificates.grouped_rows(n_in_call=3)
    job = job_on("sample", folder / "warehouse")
    written(job.warehouse, rows)
    revision = rows["criteria"][0]["dataset_revision"]
    data = DataRevision(name="grouped", revision=revision, splits=())
    job = job.looking_up(lambda: data)
    aggregate(job)
    return certificates.certified(job, folder / "groups.zip")


def test_a_certificate_binds_the_numbers_of_criteria_in_calls(in_groups):
    result = verify(in_groups)

    assert result.is_confirmed
    assert not any("n_in_call" in line for line in result.lines)
    check_calls(*read(in_groups))
    check_ids(*read(in_groups), [response("t")["text"]])


@pytest.mark.parametrize("n_in_call", [1, 2, 99, None])
def test_another_number_of_criteria_in_a_call_is_refused(
    in_groups, tmp_path, n_in_call
):
    change = with_row("rows/verdicts.jsonl", 0, n_in_call=n_in_call)
    forgery = forged(in_groups, tmp_path / "forgery.zip", change)

    reason = one_line("n_in_call) are not those that the manifest states")
    with pytest.raises(Damaged, match=reason):
        verify(forgery)


def test_a_certificate_made_before_calls_were_bound_is_valid_and_says_so(
    in_groups, tmp_path
):
    def forget_calls(manifest):
        del manifest["calls_sha256"]

    older = forged(in_groups, tmp_path / "older.zip", lambda _: None, forget_calls)

    result = verify(older)

    change = "certificates bound the number of criteria in a call (n_in_call)"
    assert result.is_confirmed
    assert f"Made before {change}: it was not checked" in result.lines


def test_a_certificate_made_before_rules_of_coverage_is_valid_and_says_what_was_not_checked(
    in_groups, tmp_path
):
    def forget_rules(members):
        del members["rows/coverage_rules.jsonl"]

    result = verify(forged(in_groups, tmp_path / "older.zip", forget_rules))

    change = "current vintages depended on coverage"
    names = "is_latest and latest ranks"
    assert result.is_confirmed
    assert f"Made before {change}: {names} were not checked" in result.lines


def test_the_ids_of_verdicts_in_groups_are_recomputed_from_their_rubric(
    in_groups, tmp_path
):
    _, tables = read(in_groups)
    text = response("t")["text"]
    texts = []
    for row in tables["responses"]:
        if row["text_sha256"]:
            cell = {name: row[name] for name in ("model", "trial", "vintage")}
            texts.append(cell | {"task": row["task_id"], "response": text})

    result = verify(in_groups, texts=(write_jsonl(tmp_path / "texts.jsonl", texts),))

    assert result.is_confirmed
    assert result.ids.differing == []
    assert result.ids.n_checked["verdicts"] == len(tables["verdicts"])
    assert any(row["n_in_call"] for row in tables["verdicts"])


def _renamed(name: str, *tables: str) -> Callable[[Members], None]:
    """Rename every judge or model in these tables."""

    def change(members):
        for table in tables:
            lines = []
            for line in members[table].splitlines():
                row = json.loads(line)
                lines.append(json.dumps({**row, name: f"the honest {row[name]}"}))
            members[table] = "\n".join([*lines, ""]).encode()

    return change


FIGURES = tuple(f"figures/{name}.jsonl" for name in LEADERBOARDS)


@pytest.fixture
def with_renamed_judge(certificate: Path, tmp_path) -> Path:
    change = _renamed("judge", "rows/verdicts.jsonl", *FIGURES)
    return forged(certificate, tmp_path / "forgery.zip", change)


def test_a_renamed_judge_shows_in_the_ids_once_the_texts_are_given(
    with_renamed_judge,
):
    result = verify(with_renamed_judge, texts=(RESPONSES,))

    assert result.differences == []
    assert not result.is_confirmed
    assert result.ids.n_checked["verdicts"] == 46
    assert len(result.ids.differing) == 46
    assert result.ids.differing[0].startswith("verdict of the honest ")
    texts = [row["response"] for row in rows_of(RESPONSES)]
    with pytest.raises(AssertionError):
        check_ids(*read(with_renamed_judge), texts)


def test_a_renamed_model_shows_in_the_ids_without_any_text(certificate, tmp_path):
    change = _renamed("model", "rows/responses.jsonl", *FIGURES)
    forgery = forged(certificate, tmp_path / "forgery.zip", change)

    result = verify(forgery)

    assert result.differences == []
    assert not result.is_confirmed
    reason = "does not have the id of its task, conversation, model"
    assert len(result.ids.differing) == 4
    assert reason in result.ids.differing[0]
    with pytest.raises(AssertionError):
        check_ids(*read(forgery), [])


with_odd_weight = with_row("rows/criteria.jsonl", 0, weight=10_000)


def test_weights_unknown_to_the_benchmark_are_refused(certificate, tmp_path):
    forgery = forged(certificate, tmp_path / "forgery.zip", with_odd_weight)

    reason = "1 weights are not from -10 to 10, as those of prbench are"
    with pytest.raises(Damaged, match=reason):
        verify(forgery)


def test_weights_unknown_to_the_benchmark_are_noted_if_the_configuration_only_warned(
    certificate, tmp_path
):
    def only_warn(manifest):
        manifest["configuration"]["quality"]["policies"]["weight_range"] = "warn"

    warned = forged(certificate, tmp_path / "warned.zip", with_odd_weight, only_warn)

    result = verify(warned)

    note = "as those of prbench are; the certified configuration only warns of them"
    assert note in "\n".join(result.lines)


@pytest.mark.parametrize(
    "add",
    [
        lambda content, table: b"MZ, a program" + content,
        lambda content, table: content[:table] + b"hidden" + content[table:],
        lambda content, table: content + b"hidden",
        lambda content, table: content + b"hidden" * 20,
    ],
)
def test_other_bytes_are_refused(add, certificate, tmp_path):
    content = certificate.read_bytes()[:-64]
    content = add(content, zipfile.ZipFile(certificate).start_dir)
    forgery = tmp_path / "forgery.zip"
    forgery.write_bytes(content + hashlib.sha256(content).hexdigest().encode())

    with pytest.raises(Damaged, match="cannot be read as a certificate"):
        verify(forgery)


def _with_member(name: str, content: bytes = b"{}\n") -> Callable[[Members], None]:
    return lambda members: members.update({name: content})


def _without_rows(members: Members):
    members.update({name: b"" for name in members if name.endswith(".jsonl")})


def _with_row_twice(name: str) -> Callable[[Members], None]:
    """Repeat the first row of a member."""

    def change(members):
        members[name] += members[name].splitlines(keepends=True)[0]

    return change


@pytest.mark.parametrize(
    ("status", "value", "reason"),
    [
        ("parse_error", 1, 'status "parse_error" and the value 1.0'),
        ("met", 5, 'the status "met" and the value 5.0'),
        ("parse_error", 0, 'status "parse_error" and the value 0.0'),
        ("met", None, 'the status "met" and the value null'),
        (None, 1, "the status null and the value 1.0"),
    ],
)
def test_a_verdict_whose_value_is_not_that_of_its_status_is_refused(
    status, value, reason, certificate, tmp_path
):
    change = with_row("rows/verdicts.jsonl", 0, status=status, value=value)
    forgery = forged(certificate, tmp_path / "forgery.zip", change)

    with pytest.raises(Damaged, match=one_line(reason)):
        verify(forgery)

    assert list(tmp_path.iterdir()) == [forgery]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_without_rows, "has no figures"),
        (
            _with_row_twice("rows/verdicts.jsonl"),
            "two rows of verdicts have the same verdict_id",
        ),
        (_with_row_twice("rows/criteria.jsonl"), "task_id, position"),
        (
            _with_row_twice("rows/responses.jsonl"),
            "two rows of responses have the same response_id",
        ),
        (
            _with_row_twice("rows/tasks.jsonl"),
            "two rows of tasks have the same task_id",
        ),
        (
            _with_row_twice("rows/score_definitions.jsonl"),
            "two rows of score_definitions have the same benchmark, score_name",
        ),
        (
            lambda members: members.pop("rows/verdicts.jsonl"),
            "lacks rows/verdicts.jsonl",
        ),
        (_with_member("../escaped.jsonl"), "is not the name of a member"),
        (_with_member("/tmp/escaped.jsonl"), "is not the name of a member"),
        (
            _with_member("recomputed/figures.duckdb.wal"),
            "is not the name of a member",
        ),
        (
            _with_member("rows/verdicts.jsonl", b"no json\n"),
            "contains a line that is no row of verdicts",
        ),
        (
            _with_member("rows/criteria.jsonl", b'{"weight": "heavy"}\n'),
            "contains a line that is no row of criteria",
        ),
        (
            _with_member("figures/leaderboard.jsonl", b"[]\n"),
            "a row of a leaderboard is not an object",
        ),
        (_with_member("rows/tasks.jsonl", b" " * 60_000_000), "it would unpack to"),
    ],
)
def test_an_archive_with_other_members_or_rows_is_refused_in_one_line(
    change, reason, certificate, tmp_path
):
    forgery = forged(certificate, tmp_path / "forgery.zip", change)

    with pytest.raises((Damaged, FileTooLarge), match=one_line(reason)):
        verify(forgery)

    assert list(tmp_path.iterdir()) == [forgery]


@pytest.mark.parametrize(
    ("change_manifest", "reason"),
    [
        (lambda manifest: manifest["files"].pop(), "its members are not those that"),
        (
            lambda manifest: manifest["files"][0].update(sha256="0"),
            "missing, or changed since",
        ),
        (
            lambda manifest: manifest.update(format=1),
            "manifest.json: is not a prbench-cert",
        ),
    ],
)
def test_a_manifest_that_does_not_fit_its_archive_is_refused_in_one_line(
    change_manifest, reason, certificate, tmp_path
):
    change = _with_member("rows/other.jsonl")
    forgery = forged(certificate, tmp_path / "forgery.zip", change, change_manifest)

    with pytest.raises(Damaged, match=one_line(reason)):
        verify(forgery)

    assert list(tmp_path.iterdir()) == [forgery]


def test_what_is_no_certificate_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is not a file; check the path"):
        verify(tmp_path / "nosuch.zip")
    (tmp_path / "cut.zip").touch()
    with pytest.raises(Damaged, match=r"cut\.zip: is empty"):
        verify(tmp_path / "cut.zip")
    with pytest.raises(Damaged, match="cannot be read as a certificate"):
        verify(certificates.zipped({"a": b"b"}, tmp_path / "other.zip"))


EVERYTHING = {"conversation": 8, "criterion": 98, "response": 4}


def rows_of(path: Path) -> list[Row]:
    return list(map(json.loads, path.read_text().splitlines()))


@pytest.fixture(scope="module")
def unpacked(certificate: Path, tmp_path_factory) -> Path:
    """The folder of the unpacked certificate, with whose hashes texts are compared."""
    folder = tmp_path_factory.mktemp("unpacked")
    unpack_verified(certificate, folder)
    return folder


@pytest.mark.slow
def test_a_data_set_an_export_and_a_warehouse_match(sample_job, unpacked, tmp_path):
    export_tables(sample_job, tmp_path / "exported")

    for sources in (
        (SAMPLE, RESPONSES),
        (tmp_path / "exported",),
        (sample_job.warehouse,),
    ):
        result, _ = check_texts(unpacked, sample_job.key, sources)
        assert result.n_checked == EVERYTHING
        assert result.n_certified == EVERYTHING
        assert result.differing == []
        assert result.missing == []
        assert result.lines == [
            "texts: 8 of 8 conversations, 98 of 98 criteria, 4 of 4 responses checked; all match"
        ]


def _raise_weight(rows: list[Row]):
    """Raise the weight of the third criterion of the first task."""
    notes = rows[0]["rubric"][2]["annotations"]
    notes[notes["weight_class"].replace(" ", "_") + "_weight"] += 1


def test_changed_texts_and_weights_are_listed(certificate, tmp_path):
    tasks = rows_of(SAMPLE)
    responses = rows_of(RESPONSES)
    tasks[0].update(prompt_0="Another.")
    tasks[0]["rubric"][2].update(title="Other.")
    _raise_weight(tasks[1:])
    responses[1].update(response="Other.")
    files = [
        write_jsonl(tmp_path / name, rows)
        for name, rows in (("t.jsonl", tasks), ("r.jsonl", responses))
    ]

    result = verify(certificate, texts=tuple(files))

    assert not result.is_confirmed
    assert result.texts is not None
    problems = (
        "t.jsonl: row 1: conversation of task sample-fin-1",
        "t.jsonl: row 1: criterion 2 of task sample-fin-1",
        "t.jsonl: row 2: criterion 2 of task sample-fin-2",
        "(trial 1, vintage base)",
    )
    for problem, line in zip(problems, result.texts.differing, strict=True):
        assert line.startswith(f"{tmp_path}/")
        assert line.endswith(f"{problem} differs from the certified text")


def test_what_is_missing_is_named_and_what_is_not_certified_is_counted(
    sample_job, certificate, unpacked, tmp_path
):
    certified, *texts = rows_of(RESPONSES)
    texts.append({**certified, "model": "stranger"})

    file = write_jsonl(tmp_path / "some.jsonl", texts)
    result, _ = check_texts(unpacked, sample_job.key, [file])

    cell = f"to task {certified['task']} (trial 1, vintage base)"
    response_name = f"response of {certified['model']} {cell}"
    assert result.missing == [response_name]
    assert result.n_others == 1
    assert result.n_checked == {"response": 3}
    assert f"not given: {response_name}" in result.lines
    assert verify(certificate, texts=(file,)).is_confirmed


@pytest.mark.parametrize("name", ["folder", "responses.jsonl"])
def test_a_path_of_texts_that_does_not_exist_is_refused_before_the_file_is_read(
    name, tmp_path
):
    with pytest.raises(UsageError, match=one_line(f"{name}: no such file or folder")):
        verify(tmp_path / "missing.zip", texts=(tmp_path / name,))


def test_what_was_changed_left_out_or_added_differs(certificate, tmp_path):
    def change(members):
        lines = members[FIGURES[0]].splitlines(keepends=True)
        lines.append(lines.pop(1).replace(b'"brief"', b'"grand"'))
        members[FIGURES[0]] = b"".join(lines)
        with_row(FIGURES[0], 0, mean_score=0.5)(members)

    result = verify(forged(certificate, tmp_path / "forgery.zip", change))

    differences = [
        (difference.column, difference.certified, difference.row["model"])
        for difference in result.differences
    ]
    for difference in result.differences:
        assert difference.leaderboard == "leaderboard"
    assert sorted(differences, key=repr) == [
        ("mean_score", 0.5, "brief"),
        (None, "absent", "brief"),
        (None, "present", "grand"),
    ]
