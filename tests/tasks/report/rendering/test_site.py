"""The folder of a report: what is written, kept, and deleted."""

import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.report.rendering.site import Site, is_whole, only_writer, report_files
from tasks.rules.errors import UsageError
from tests.tasks.bundles.manifests import sealed
from tests.tasks.report.drilldown.drilled import files

OWN = {"report.json"}
OLD = "data/0000000000000000.js"
NEW = "data/0000000000000001.js"


def site_with(folder: Path, *names: str) -> Path:
    """A report with these pages."""
    site = Site(folder)
    for name in names:
        site.write(name, "ours")
    site.finish()
    return folder


def test_a_later_report_replaces_an_earlier_one_and_leaves_nothing_of_it(tmp_path):
    folder = site_with(tmp_path / "site", "index.html", "same.html", "data/gone.js")
    before = (folder / "same.html").stat().st_ino

    second = Site(folder)
    second.write("index.html", "new")
    second.write("same.html", "ours")  # it is not written again
    size = second.finish()

    contents = files(folder)
    assert contents.keys() == {"index.html", "same.html", *OWN}
    assert contents["index.html"] == b"new"
    assert contents["same.html"] == b"ours"
    assert (folder / "same.html").stat().st_ino == before
    assert size == sum(map(len, contents.values()))
    assert not (folder / "data").exists()


@pytest.mark.parametrize(
    "other", ["thesis.tex", ".git/config", "figures/mine.csv", "report.json"]
)
def test_a_folder_with_other_files_is_refused_and_left_alone_without_a_lock(
    tmp_path, other
):
    path = tmp_path / "mine" / other
    path.parent.mkdir(parents=True)
    path.write_text("mine")

    with pytest.raises(UsageError), only_writer(tmp_path / "mine"):
        pass
    with pytest.raises(UsageError, match="has files that are not a report"):
        Site(tmp_path / "mine")
    assert files(tmp_path / "mine") == {other: b"mine"}


OTHER_MARKS = (
    b'{"format": "lighthouse", "version": 1}',
    b'["prbench-report"]',
    b"not JSON",
    b'{"format": "prbench-report"}',
    b"7",
)
LATER_MARK = sealed({"format": "prbench-report", "version": 99})


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        *product(OTHER_MARKS, ["has files that are not a report"]),
        (LATER_MARK, "is a report of another version"),
    ],
)
def test_the_mark_of_another_tool_or_of_a_later_version_makes_no_folder_a_report(
    tmp_path, mark, reason
):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("mine")
    (tmp_path / "report.json").write_bytes(mark)

    with pytest.raises(UsageError, match=reason):
        Site(tmp_path)
    assert files(tmp_path) == {".git/config": b"mine", "report.json": mark}


def test_what_people_put_into_a_report_stays_and_so_do_their_folders(tmp_path):
    site = site_with(
        tmp_path / "site",
        "index.html",
        "data/gone.js",
        "figures/gone.csv",
        "figures/stays.csv",
    )
    mine = {
        ".git/config": "mine",
        "notes.md": "mine",
        "figures/mine.csv": "mine",
        "data/mine/deep.txt": "mine",
    }
    for name, text in mine.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (site / "empty").mkdir()

    site_with(site, "index.html", "figures/stays.csv")

    assert files(site).keys() - OWN == {"index.html", "figures/stays.csv", *mine}
    assert (site / "empty").is_dir()
    assert report_files(site) == ["figures/stays.csv", "index.html", "report.json"]


def test_what_a_killed_build_or_an_earlier_version_left_is_removed(tmp_path):
    site = site_with(tmp_path / "site", "index.html", "old.js")
    (site / "mine.txt").write_text("mine")
    Site(site).write(NEW, "ours")
    (site / f".{'0' * 32}.tmp").write_text("cut off")
    (site / f"data/.{'0' * 32}.tmp").write_text("cut off")
    (site / "report-basis.txt").write_text("a hash")

    site_with(site, "index.html")
    assert files(site).keys() - OWN == {"index.html", "mine.txt"}


def test_a_data_file_that_the_report_before_names_is_deleted_by_the_build_after_this_one(
    tmp_path,
):
    site = site_with(tmp_path / "site", OLD)

    site_with(site, NEW)
    assert files(site).keys() - OWN == {OLD, NEW}

    site_with(site, NEW)
    assert files(site).keys() - OWN == {NEW}


def test_only_a_data_file_that_is_there_whole_is_kept(tmp_path):
    site = site_with(tmp_path / "site", OLD, NEW)
    (site / OLD).write_text("our")

    assert not Site(site).keep(OLD)
    assert Site(site).keep(NEW)
    assert not Site(site).keep("data/0000000000000002.js")
    assert not is_whole(site)
    assert is_whole(site_with(site, OLD, NEW))


def test_a_data_file_with_a_flipped_bit_is_not_kept(tmp_path):
    site = site_with(tmp_path / "site", OLD)
    (site / OLD).write_text("ourr")

    assert not Site(site).keep(OLD)


@given(st.integers(0, 100_000), st.integers(0, 7))
def test_a_report_whose_mark_has_a_flipped_bit_is_written_again(byte, bit):
    with TemporaryDirectory() as folder:
        site = site_with(Path(folder), "index.html", "assets/report.css", OLD)
        mark = site / "report.json"
        whole = mark.read_bytes()
        damaged = bytearray(whole)
        damaged[byte % len(whole)] ^= 1 << bit
        mark.write_bytes(damaged)

        with only_writer(site):
            site_with(site, "index.html", "assets/report.css", OLD)

        assert mark.read_bytes() == whole
        assert is_whole(site)


@pytest.mark.parametrize(
    "mark", [b"", b"\0" * 300, b'{"format": "prbench-rep', b"\xff"]
)
def test_a_report_whose_mark_is_lost_is_written_again(tmp_path, mark):
    site = site_with(tmp_path / "site", "index.html", "assets/report.css")
    (site / "report.json").write_bytes(mark)

    assert not is_whole(site)
    assert is_whole(site_with(site, "index.html", "assets/report.css"))


def test_a_report_without_hashes_is_written_again_in_full(tmp_path):
    site = site_with(tmp_path / "site", "index.html", OLD)
    mark = {
        "format": "prbench-report",
        "version": 3,
        "files": {"index.html": 4, OLD: 4},
    }
    (site / "report.json").write_text(json.dumps(mark))

    assert is_whole(site)
    assert not Site(site).keep(OLD)


def test_links_in_a_report_are_left_alone_and_never_followed(tmp_path):
    site = site_with(tmp_path / "site", "index.html", "data/chunk.js")
    elsewhere = tmp_path / "elsewhere"
    nothing = tmp_path / "nothing-in-it"
    for name, folder in (("other", elsewhere), ("shelf", nothing)):
        folder.mkdir()
        (site / name).symlink_to(folder)
    (elsewhere / "mine.txt").write_text("mine")
    names = ("other/mine.txt", "../elsewhere/mine.txt", str(elsewhere / "mine.txt"))
    mark = json.loads((site / "report.json").read_text())
    forged = {
        "format": mark["format"],
        "version": mark["version"],
        "files": dict.fromkeys(names, 4),
    }
    (site / "report.json").write_text(json.dumps(forged))

    site_with(site, "index.html")

    assert [(site / name).is_symlink() for name in ("shelf", "other")] == [True, True]
    assert (elsewhere / "mine.txt").read_text() == "mine"


def test_a_second_writer_waits_for_the_first(tmp_path):
    order = []

    def write_second():
        with only_writer(tmp_path / "site"):
            site_with(tmp_path / "site", "index.html")
            order.append("second")

    second = Thread(target=write_second)
    with only_writer(tmp_path / "site"):
        second.start()
        second.join(0.2)
        site_with(tmp_path / "site", "index.html", "other.html")
        order.append("first")
    second.join()

    assert order == ["first", "second"]
    assert not (tmp_path / "site/other.html").exists()
