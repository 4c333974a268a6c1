"""The folder of a report: what is written, kept, and taken away."""

from pathlib import Path

import pytest

from tasks.report.site import Site
from tasks.rules.errors import UsageError


def files_of(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_later_report_replaces_an_earlier_one_and_leaves_nothing_of_it(tmp_path: Path) -> None:
    first = Site(tmp_path / "site")
    first.write("index.html", "old")
    first.write("data/old/gone.js", "old")
    first.finish()

    second = Site(tmp_path / "site")
    second.write("index.html", "new")
    size = second.finish()

    found = files_of(tmp_path / "site")
    assert {name: text for name, text in found.items() if name != "report.json"} == {"index.html": "new"}
    assert size == sum(map(len, found.values()))
    assert not (tmp_path / "site/data").exists()


def test_a_file_that_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    for _ in range(2):
        site = Site(tmp_path)
        site.write("page.html", "text")
        site.write("other.html", "new" if (tmp_path / "other.html").exists() else "old")
        before = (tmp_path / "page.html").stat().st_ino
    assert (tmp_path / "page.html").stat().st_ino == before
    assert (tmp_path / "other.html").read_text() == "new"


def test_what_is_kept_stays_without_being_written(tmp_path: Path) -> None:
    Site(tmp_path).write("data/chunk.js", "big")

    site = Site(tmp_path)
    site.keep("data/chunk.js")
    site.finish()

    assert (tmp_path / "data/chunk.js").read_text() == "big"


@pytest.mark.parametrize("other", ["thesis.tex", ".git/config", "figures/mine.csv"])
def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path, other: str) -> None:
    path = tmp_path / "mine" / other
    path.parent.mkdir(parents=True)
    path.write_text("mine")

    with pytest.raises(UsageError, match="holds other files than a report"):
        Site(tmp_path / "mine")
    assert files_of(tmp_path / "mine") == {other: "mine"}


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")

    with pytest.raises(UsageError, match="is a file"):
        Site(tmp_path / "report")
