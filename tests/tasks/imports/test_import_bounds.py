"""Bounds of an import: it reads only regular files in its folder that do not unpack to far more
than their size.
"""

import os
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.certify.verifying import verify
from tasks.config.job import Job
from tasks.dataset.foreign_files import MOST_BYTES, NotInside, open_inside
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
from tests.tasks.imports.conftest import ingested

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return ingested(tmp_path_factory.mktemp("bounds"), "t1", "t2")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (path := tmp_path / "elsewhere" / "t1.md").parent.mkdir()
    path.write_text("root:x:0:0", encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reports" / "ada").mkdir(parents=True)
    (tmp_path / "reports" / "ada" / "t2.md").write_text("Inside.", encoding="utf-8")
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
    job: Job, folder: Path, secret: Path, target: str | None, reason: str, skip_other: bool
) -> None:
    (folder / "ada" / "x.md").symlink_to(secret) if target == "x.md" else None
    file = folder / "ada" / "t1.md"
    os.mkfifo(file) if target is None else file.symlink_to(target.format(secret=secret))
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
def test_a_table_names_files_of_its_folder_alone(
    job: Job, folder: Path, secret: Path, name: str
) -> None:
    (folder / "link.md").symlink_to(secret)
    (folder / "linked").symlink_to(secret.parent)
    (folder / "ada.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    files = {"t2": "ada/t2.md", "t1": name.format(secret=secret)}
    rows = [
        {
            "task": task,
            "model": "m",
            "file": file,
        }
        for task, file in files.items()
    ]
    reason = "is not a regular file" if name in {"pipe.md", "ada.md"} else "leads out of"
    with pytest.raises(PipelineError, match=rf"files.jsonl: row 2: [\s\S]*{reason}"):
        import_responses(job, write_jsonl(folder / "files.jsonl", rows))
    assert rows_in(job, "from responses") == []


def test_what_stays_inside_is_taken_however_it_is_named(
    job: Job, folder: Path, tmp_path: Path
) -> None:
    (folder / "ada" / "t1.md").symlink_to("t2.md")
    assert import_responses(job, folder).rows == 2
    files = {"t1": "ada/../ada/t2.md", "t2": str(folder / "ada" / "t1.md")}
    rows = [
        {
            "task": task,
            "model": "m",
            "file": file,
        }
        for task, file in files.items()
    ]
    assert import_responses(job, write_jsonl(folder / "files.jsonl", rows)).rows == 2
    # The folder itself may be a link: the user chose it.
    (tmp_path / "by-link").symlink_to(folder / "ada")
    assert import_responses(job, tmp_path / "by-link", "bell", skip_other=True).rows == 2


@pytest.mark.parametrize("where", ["file", "folder"])
def test_a_link_put_in_place_after_the_look_is_not_followed(
    folder: Path, secret: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = Path.resolve

    def swap_after_the_look(path: Path, strict: bool = False) -> Path:
        resolved = resolve(path, strict)
        if path.name == "t2.md":
            looked_at, outside = (path, secret) if where == "file" else (path.parent, secret.parent)
            looked_at.rename(folder / "old")
            looked_at.symlink_to(outside)
        return resolved

    monkeypatch.setattr(Path, "resolve", swap_after_the_look)
    (secret.parent / "t2.md").write_text("Outside.", encoding="utf-8")
    with pytest.raises((NotInside, OSError)):
        open_inside(folder, "ada/t2.md")


def test_a_document_is_opened_within_its_folder_when_it_is_converted(
    folder: Path, secret: Path
) -> None:
    for name in ("t1.md", "t1.pdf", "t1.docx"):
        (folder / name).symlink_to(secret)
        with pytest.raises(NotInside, match="leads out of"):
            convert([folder / name], folder, is_quiet=True)


def test_an_export_or_backup_with_links_out_of_it_is_refused(job: Job, tmp_path: Path) -> None:
    export_tables(job, tmp_path / "export")
    backup(job, tmp_path / "backup")
    for given, bring_in in (("export", imported), ("backup", restore)):
        file = max((tmp_path / given).rglob("*.parquet"), key=lambda path: path.stat().st_size)
        moved = file.rename(tmp_path / f"{given}.parquet")
        file.symlink_to(moved)
        empty = job.model_copy(update={"warehouse": tmp_path / f"from-{given}"})
        with pytest.raises(PipelineError, match="leads out of"):
            bring_in(empty, tmp_path / given)


READERS: dict[str, Callable[[Job, Path], object]] = {
    "responses.csv": import_responses,
    "responses.jsonl": import_responses,
    "responses.parquet": import_responses,
    "verdicts.json": import_verdicts,
    "reviews.csv": lambda job, file: import_reviews(job, [file]),
    "log.eval": lambda job, file: import_results(job, [file]),
    "report.html": lambda job, file: import_results(job, [file]),
    "manifest.json": lambda job, file: imported(job, file.parent),
    "backup.json": lambda job, file: restore(
        job.model_copy(update={"warehouse": job.warehouse / "x"}), file.parent
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
        for kind in ("a pipe", "/dev/full", "a link to /dev/zero", "too large")
        if (name, kind) != ("figures.zip", "too large")  # only its digest is made of it
    ],
)
def test_only_regular_files_of_bounded_size_are_read(
    job: Job, tmp_path: Path, name: str, kind: str
) -> None:
    (path := tmp_path / "given" / name).parent.mkdir()
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "too large":
        path.touch()
        os.truncate(path, MOST_BYTES + 1)  # without using disk space
    else:
        path.symlink_to(kind.rsplit(maxsplit=1)[-1])
    reason = "is too large (2.1 GB of at most 2.1); split it" if kind == "too large" else "not a"
    with pytest.raises(PipelineError, match=one_line(reason)):
        READERS[name](job, path)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_that_unpacks_to_far_more_is_refused_unread(
    job: Job, tmp_path: Path, method: int
) -> None:
    with zipfile.ZipFile(tmp_path / "log.eval", "w", method) as archive:
        archive.writestr("header.json", "{}")
        for number in range(100_000 if method == zipfile.ZIP_STORED else 1):
            archive.writestr(
                f"samples/{number}", b"" if method == zipfile.ZIP_STORED else bytes(60_000_000)
            )
    with pytest.raises(
        PipelineError, match=r"log.eval: (it would unpack to 60 MB|has 100,001 members)"
    ):
        import_results(job, [tmp_path / "log.eval"])


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_larger_than_the_archive_says_is_not_unpacked_whole(
    job: Job, tmp_path: Path, method: int
) -> None:
    n_bytes = 30_000_000
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("header.json", bytes(n_bytes))
    path.write_bytes(
        path.read_bytes().replace(struct.pack("<L", n_bytes), struct.pack("<L", 1_000))
    )
    tracemalloc.start()
    with pytest.raises(PipelineError, match=r"log.eval: cannot be read"):
        import_results(job, [path])
    assert tracemalloc.get_traced_memory()[1] < n_bytes / 2
    tracemalloc.stop()


def test_a_text_that_a_parquet_file_stores_once_for_many_rows_is_not_unpacked(
    job: Job, tmp_path: Path
) -> None:
    text = pa.DictionaryArray.from_arrays(
        pa.array([0] * 100_000, pa.int32()), ["A response. " * 10_000]
    )
    pq.write_table(pa.table({"response": text}), tmp_path / "r.parquet")
    with pytest.raises(PipelineError, match=r"r.parquet: (it would unpack to|cannot be read)"):
        import_responses(job, tmp_path / "r.parquet")


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
def test_a_report_is_read_in_time_that_grows_with_its_size_alone(
    job: Job, tmp_path: Path, part: str
) -> None:
    headings = (
        "<h3>Prompt conversation</h3>",
        "<h3>Sampled message</h3>",
        "<h3>Results</h3><p>Rubrics with grades: ",
    )
    (tmp_path / "r.html").write_text("".join(heading + part * 40_000 for heading in headings))
    # A pattern that scans to the end from each position takes minutes.
    with pytest.raises(PipelineError):
        import_results(job, [tmp_path / "r.html"], model="m", judge="j")
