"""Bounds of an import: it reads only regular files in its folder that do not unpack to far more
than their size.
"""

import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.certify.verifying import verify
from tasks.config.job import Job
from tasks.dataset.foreign_files import MOST_BYTES, UnsafeFile, open_inside
from tasks.exports.tables import export_tables
from tasks.imports.documents import convert
from tasks.imports.responses import import_responses
from tasks.imports.results.importing import import_results
from tasks.imports.reviews import import_reviews
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.maintain.backup import backup, restore
from tasks.rules.errors import PipelineError
from tests.kit import imported, job_on, one_line, rows_in, write_jsonl
from tests.tasks.imports.conftest import job_with_tasks

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    return job_with_tasks(tmp_path_factory.mktemp("bounds"), "t1", "t2")


@pytest.fixture
def secret(tmp_path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "t1.md").write_text("root:x:0:0")
    return folder / "t1.md"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "reports" / "ada").mkdir(parents=True)
    (tmp_path / "reports" / "ada" / "t2.md").write_text("Inside.")
    return tmp_path / "reports"


@pytest.mark.parametrize("skip_other", [False, True])
@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("{secret}", "leads out of"),
        ("../../elsewhere/t1.md", "leads out of"),
        ("x.md", "leads out of"),
        ("../../elsewhere", "is a link to a folder"),
        ("/dev/zero", "leads out of"),
        (None, "is not a regular file"),
    ],
)
def test_a_link_that_leads_out_or_a_pipe_is_refused(
    job,
    folder,
    secret,
    target,
    reason,
    skip_other,
):
    file = folder / "ada" / "t1.md"
    if target is None:
        os.mkfifo(file)
    else:
        file.symlink_to(target.format(secret=secret))
    if target == "x.md":
        (folder / "ada" / "x.md").symlink_to(secret)

    with pytest.raises((PipelineError, OSError), match=one_line(reason)):
        import_responses(job, folder, skip_other=skip_other)
    assert rows_in(job, "from responses") == []


@pytest.mark.parametrize(
    "name",
    [
        "{secret}",
        "../elsewhere/t1.md",
        "ada/../../elsewhere/t1.md",
        "link.md",
        "linked/t1.md",
        "/dev/../{secret}",
        "pipe.md",
        "ada.md",
        "nul\0.md",
    ],
)
def test_a_table_names_files_of_its_folder_alone(job, folder, secret, name):
    (folder / "link.md").symlink_to(secret)
    (folder / "linked").symlink_to(secret.parent)
    (folder / "ada.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    rows = [
        {"task": "t2", "model": "m", "file": "ada/t2.md"},
        {
            "task": "t1",
            "model": "m",
            "file": name.format(secret=secret),
        },
    ]
    reason = "leads out of"
    if name in {"pipe.md", "ada.md"}:
        reason = "is not a regular file"

    with pytest.raises(PipelineError, match=rf"files.jsonl: row 2: [\s\S]*{reason}"):
        import_responses(job, write_jsonl(folder / "files.jsonl", rows))
    assert rows_in(job, "from responses") == []


def test_a_link_that_stays_inside_is_followed(job, folder):
    (folder / "ada" / "t1.md").symlink_to("t2.md")

    assert import_responses(job, folder).rows == 2


def test_a_table_may_name_a_file_of_its_folder_by_any_path(job, folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    rows = [
        {"task": "t1", "model": "m", "file": "ada/../ada/t2.md"},
        {
            "task": "t2",
            "model": "m",
            "file": str(folder / "ada" / "t2.md"),
        },
    ]

    table = write_jsonl(folder / "files.jsonl", rows)

    assert import_responses(job, table.relative_to(folder.parent)).rows == 2


def test_the_folder_itself_may_be_a_link_because_the_user_chose_it(
    job,
    folder,
    tmp_path,
):
    (tmp_path / "by-link").symlink_to(folder / "ada")

    assert import_responses(job, tmp_path / "by-link", "bell").rows == 1


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_that_replaces_a_checked_name_is_not_followed(
    folder,
    secret,
    is_folder,
    monkeypatch,
):
    resolve = Path.resolve

    def replace_after_the_check(path, strict=False):
        resolved = resolve(path, strict)
        if path.name == "t2.md":
            checked_path = path.parent if is_folder else path
            checked_path.rename(folder / "old")
            checked_path.symlink_to(secret.parent if is_folder else secret)
        return resolved

    monkeypatch.setattr(Path, "resolve", replace_after_the_check)
    (secret.parent / "t2.md").write_text("Outside.")

    with pytest.raises((UnsafeFile, OSError)):
        open_inside(folder, "ada/t2.md")


@pytest.mark.parametrize("name", ["t1.md", "t1.pdf", "t1.docx"])
def test_a_document_is_opened_within_its_folder_when_it_is_converted(
    folder,
    secret,
    name,
):
    (folder / name).symlink_to(secret)

    with pytest.raises(UnsafeFile, match="leads out of"):
        convert([folder / name], folder, is_quiet=True)


@pytest.mark.parametrize(
    ("write", "read"), [(export_tables, imported), (backup, restore)]
)
def test_an_export_or_backup_with_links_out_of_it_is_refused(
    job,
    tmp_path,
    write,
    read,
):
    folder = tmp_path / "bundle"
    write(job, folder)
    largest_file = max(
        folder.rglob("*.parquet"), key=lambda path: path.stat().st_size
    )
    largest_file.symlink_to(largest_file.rename(tmp_path / "outside.parquet"))
    empty_job = job.model_copy(update={"warehouse": tmp_path / "empty"})

    with pytest.raises(PipelineError, match="leads out of"):
        read(empty_job, folder)


READERS = {
    "responses.csv": import_responses,
    "responses.jsonl": import_responses,
    "responses.parquet": import_responses,
    "verdicts.json": import_verdicts,
    "reviews.csv": lambda job, file: import_reviews(job, [file]),
    "log.eval": lambda job, file: import_results(job, [file]),
    "report.html": lambda job, file: import_results(job, [file]),
    "manifest.json": lambda job, file: imported(job, file.parent),
    "backup.json": lambda job, file: restore(
        job.model_copy(update={"warehouse": job.warehouse / "x"}),
        file.parent,
    ),
    "figures.zip": lambda _, file: verify(file),
    "finance.jsonl": lambda job, file: ingest(job_on(file, job.warehouse)),
    "finance.parquet": lambda job, file: ingest(job_on(file, job.warehouse)),
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in READERS
        for kind in ("a pipe", "a link to a device", "too large")
        if (name, kind)
        != ("figures.zip", "too large")  # only its digest is made of it
    ],
)
def test_only_regular_files_of_bounded_size_are_read(job, tmp_path, name, kind):
    path = tmp_path / name
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "too large":
        path.touch()
        os.truncate(path, MOST_BYTES + 1)  # without using disk space
    else:
        path.symlink_to("/dev/zero")

    reason = "is not a regular file"
    if kind == "too large":
        reason = "is too large (2.1 GB of at most 2.1); split it"
    elif path.stem in {"figures", "finance"}:
        reason = "is not a file"
    with pytest.raises(PipelineError, match=one_line(reason)):
        READERS[name](job, path)


@pytest.mark.parametrize(
    ("n_members", "n_bytes", "reason"),
    [
        (10, 0, "has 11 members"),
        (1, 60_000_000, "it would unpack to 60 MB"),
    ],
)
def test_an_archive_that_unpacks_to_far_more_is_refused_unread(
    job,
    tmp_path,
    monkeypatch,
    n_members,
    n_bytes,
    reason,
):
    monkeypatch.setattr("tasks.dataset.foreign_files.MOST_MEMBERS", 10)
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for number in range(n_members):
            archive.writestr(f"samples/{number}", bytes(n_bytes))

    with pytest.raises(PipelineError, match=f"log.eval: {reason}"):
        import_results(job, [tmp_path / "log.eval"])


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_member_larger_than_the_archive_says_is_not_unpacked_whole(
    job,
    tmp_path,
    method,
):
    n_bytes = 30_000_000
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("header.json", bytes(n_bytes))
    stated_size = struct.pack("<L", 1_000)
    path.write_bytes(
        path.read_bytes().replace(struct.pack("<L", n_bytes), stated_size)
    )

    tracemalloc.start()
    with pytest.raises(PipelineError, match=r"log.eval: cannot be read"):
        import_results(job, [path])
    assert tracemalloc.get_traced_memory()[1] < n_bytes / 2
    tracemalloc.stop()


def test_a_text_that_a_parquet_file_stores_once_for_many_rows_is_not_unpacked(
    shared,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setattr("tasks.dataset.source.MOST_BYTES", 100_000_000)
    text = pa.DictionaryArray.from_arrays(
        pa.array([0] * 1_000, pa.int32()),
        ["A response. " * 10_000],
    )
    pq.write_table(pa.table({"response": text}), tmp_path / "r.parquet")

    reason = r"it would unpack to more than 0\.1 GB"
    with pytest.raises(PipelineError, match=rf"r\.parquet: {reason}"):
        import_responses(shared, tmp_path / "r.parquet")


@pytest.mark.parametrize(
    "part",
    [
        '<div class="message u"><div class="role">\nu',
        '<div class="message u"><div class="role">u<pre>',
        "<pre>",
        "<p>Score: 1",
        "<td><b>Score</b></td>\n",
        "\n\n[True] [5",
        "<!--",
    ],
)
def test_a_report_is_read_in_time_that_grows_with_its_size_alone(job, tmp_path, part):
    headings = (
        "<h3>Prompt conversation</h3>",
        "<h3>Sampled message</h3>",
        "<h3>Results</h3><p>Rubrics with grades: ",
    )
    (tmp_path / "r.html").write_text(
        "".join(heading + part * 40_000 for heading in headings)
    )
    # A pattern that scans to the end from each position takes minutes.
    with pytest.raises(PipelineError):
        import_results(
            job,
            [tmp_path / "r.html"],
            model="m",
            judge="j",
        )
