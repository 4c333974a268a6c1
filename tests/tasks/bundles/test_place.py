"""What a path or an address stands for, and what a store's library says in one line."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flows.cli.main import main
from tasks.bundles.stores import Folder, Store, place
from tasks.rules.errors import PipelineError, UsageError


@pytest.mark.parametrize(("given", "meant"), [
    ("backup/prbench", Path("backup/prbench")), ("/mnt/backup", Path("/mnt/backup")),
    ("file:///mnt/backup", Path("/mnt/backup")), ("local:///mnt/backup/", Path("/mnt/backup")),
])  # fmt: skip
def test_a_path_and_an_address_of_a_file_are_folders(given: str, meant: Path) -> None:
    assert meant == place(given)


def test_any_other_address_is_a_prefix_that_is_named_as_it_was_given() -> None:
    found = place("memory://bucket/prefix/")

    assert isinstance(found, Store)
    assert ("memory://bucket/prefix", "/bucket/prefix") == (str(found), found.root)


@pytest.mark.parametrize("given", ["memory://bucket/pre[12]", "memory://bucket/*"])
def test_an_address_that_would_be_a_pattern_of_others_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="have a meaning in addresses"):
        place(given)


SECRETS = {
    "s3://key:planted-secret@bucket/prefix": "s3", "s3://key:planted/secret@bucket": "s3",
    "sftp://user:planted@host/folder": "sftp", "https://host/container?sig=planted": "https",
    "s4://key:planted@bucket": "s4",
}  # fmt: skip


@pytest.mark.parametrize("given", SECRETS)
@pytest.mark.parametrize("command", ["backup", "restore", "export", "import warehouse", "publish"])
def test_keys_in_an_address_are_refused_and_not_shown(
    given: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), given, "--warehouse", str(tmp_path / "data"), "-v"]) == 2

    said = capsys.readouterr().err
    *_, line = said.splitlines()
    assert "planted" not in said
    assert line.startswith(f"prbench: {SECRETS[given]}://...: an address must hold no keys")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("given", "reason"), [
    ("s4://bucket/x", "s4:// is not known; name a folder, or an address such as s3://bucket/prefix"),
    ("simplecache::memory://bucket/x", "simplecache::memory:// is not known"),
    ("s3:/bucket/x", "an address has two slashes: s3://bucket/x; a folder, ./s3:/bucket/x"),
    ("memory://", "names no bucket or folder; name one, such as memory://bucket/prefix"),
])  # fmt: skip
def test_an_address_that_leads_nowhere_is_refused_in_one_line(
    given: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", given, "--warehouse", str(tmp_path)]) == 2

    said = capsys.readouterr().err
    assert said.startswith(f"prbench: {given}: {reason}")
    assert said.count("\n") == 1


def test_a_store_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(UsageError, match=r"gs://b/x: .* is not installed; .*gcsfs.* \(s3://: `uv sync --extra s3`\)"):
        place("gs://b/x")


def test_what_a_library_raises_is_one_line_without_secrets(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-planted-secret-value")

    def fail(path: str) -> None:
        raise RuntimeError(f"denied\nwith a-planted-secret-value for {path}")

    monkeypatch.setattr(store.filesystem, "cat_file", fail)
    with pytest.raises(PipelineError) as caught:
        store.read("name")

    said = str(caught.value)
    assert said.startswith("memory://bucket/prefix: RuntimeError: denied with ")
    assert said.endswith("check the address, the network and the keys")
    assert "planted" not in said
    assert "\n" not in said


def test_names_of_files_are_those_below_the_prefix_alone(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    store.put({"a/b": tmp_path / "file", "c": tmp_path / "file"}, is_quiet=True)
    Store("memory://bucket/prefix-2", store.filesystem, "/bucket/prefix-2").write("d", b"other")

    assert {"a/b": 5, "c": 5} == store.files()
    store.remove(["c"])
    assert {"b": 5} == store.below("a").files()
    assert None is store.read("c")


def test_a_folder_is_listed_and_cleared_while_another_writer_changes_it(tmp_path: Path) -> None:
    folder, is_over = Folder(tmp_path), threading.Event()
    folder.write("a/b", b"")

    def write() -> None:
        while not is_over.is_set():
            folder.write("c", b"1")

    with ThreadPoolExecutor() as writers:
        writers.submit(write)
        try:
            assert all(found.keys() >= {"a/b"} for found in (folder.files() for _ in range(2_000)))
        finally:
            is_over.set()
    folder.remove(["a/b", "a/gone"])
    assert {"c": 1} == folder.files()
    assert not (tmp_path / "a").exists()


def test_a_large_upload_tells_its_progress(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(bytes(6_000_000))
    store.put({name: tmp_path / name for name in ("a", "b")}, is_quiet=False)
    store.get({"a": tmp_path / "again"}, 6_000_000, is_quiet=False)

    assert "upload memory://bucket/prefix (MB): 12 of 12\n" == capsys.readouterr().err
    assert (tmp_path / "again").read_bytes() == (tmp_path / "a").read_bytes()
