"""A bundle of each kind is read as it was written, from every kind of location; changed ones are
refused.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import main
from tasks.bundles.bundle import (
    KINDS,
    Bundle,
    Damaged,
    fetch_bundle,
    file_at,
    manifest_of,
    parse_manifest,
    read_bundle,
    verify_bundle,
    write_bundle,
)
from tasks.bundles.stores import Folder, Location, Store, open_location
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import one_line
from tests.tasks.bundles.manifests import sealed
from tests.tasks.bundles.s3 import bucket

CONTENT = {
    "a.parquet": b"PAR1",
    "deeper/b.jsonl": '{"name": "é"}\n'.encode(),
    "empty": b"",
}
FILE = {"n_bytes": 4, "sha256": "0" * 64}
META = {
    "made_at": "2026-11-25T16:00:00+00:00",
    "tables": [
        {
            "name": "tasks",
            "n_rows": 3,
            "files": ["a.parquet"],
        }
    ],
}


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    with bucket():
        yield


@pytest.fixture(
    params=["folder", "memory", pytest.param("s3", marks=pytest.mark.slow)]
)
def location(request, tmp_path, store: Store) -> Location:
    if request.param == "s3":
        request.getfixturevalue("s3")
        return open_location(f"s3://results/{tmp_path.name}")
    return store if request.param == "memory" else Folder(tmp_path / "bundle")


@pytest.fixture
def source(tmp_path) -> Path:
    for name, content in CONTENT.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "source"


def written(
    source: Path,
    location: Location,
    kind: Any = "export",
) -> Bundle:
    files = {file_at(source / name, name): source / name for name in CONTENT}
    return write_bundle(location, kind, files, META)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_of_each_kind_comes_back_as_it_was_written(kind, source, location):
    bundle = written(source, location, kind)

    assert bundle.kind == kind
    assert bundle.meta == META
    assert bundle.n_bytes == 19
    assert read_bundle(location, kind) == bundle
    assert read_bundle(location, *KINDS) == bundle
    assert location.files().keys() == {*CONTENT, manifest_of(kind)}


def test_the_files_of_a_bundle_are_fetched_as_they_were_written(
    source,
    location,
    tmp_path,
):
    bundle = written(source, location)
    verify_bundle(location, bundle)

    fetch_bundle(
        location, bundle, {name: tmp_path / "copy" / name for name in CONTENT}
    )

    for name, content in CONTENT.items():
        assert (tmp_path / "copy" / name).read_bytes() == content


@pytest.mark.parametrize("content", [b"PAR2", b"PAR", None])
def test_a_file_that_is_missing_or_changed_is_refused_when_it_is_verified_or_fetched(
    source,
    location,
    tmp_path,
    content,
):
    bundle = written(source, location)
    location.remove(["a.parquet"])
    if content is not None:
        location.write("a.parquet", content)

    reason = one_line("a.parquet: missing, or changed since it was written")
    with pytest.raises(Damaged, match=reason):
        verify_bundle(location, bundle)
    with pytest.raises(Damaged, match=reason):
        fetch_bundle(
            location,
            bundle,
            {name: tmp_path / "copy" / name for name in CONTENT},
        )


@pytest.mark.parametrize("kind", KINDS)
def test_files_without_a_manifest_are_no_bundle(kind, source):
    reason = f"is not a complete {kind}, {manifest_of(kind)} is missing"
    with pytest.raises(Damaged, match=reason):
        read_bundle(Folder(source), kind)


SPOILED = {
    "another kind": (
        lambda bundle: bundle.update(format="prbench-backup"),
        "is not a prbench-export; check the path",
    ),
    "a newer format": (lambda bundle: bundle.update(version=9), "is of version 9"),
    "a version in words": (
        lambda bundle: bundle.update(version="2"),
        "cannot be read",
    ),
    "no files": (lambda bundle: bundle.update(files=None), "cannot be read"),
    "a size in words": (
        lambda bundle: bundle["files"][0].update(n_bytes="many"),
        "cannot be read",
    ),
    "a file without a hash": (
        lambda bundle: bundle["files"][0].pop("sha256"),
        "cannot be read",
    ),
}
NAMES = (
    "/outside",
    "../outside",
    "files/../../outside",
    "files//outside",
    "./outside",
    ".",
    "",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_plain_path_in_the_folder_is_refused(name):
    document = {
        "format": "prbench-export",
        "version": 2,
        "files": [{**FILE, "name": name}],
    }

    with pytest.raises(Damaged, match=one_line("which is not a file of the export")):
        parse_manifest(sealed(document), "manifest.json", "export")


@pytest.mark.parametrize("case", SPOILED)
def test_a_manifest_that_somebody_made_by_hand_is_refused_in_one_line(case, source):
    written(source, Folder(source))
    spoil, reason = SPOILED[case]
    document = json.loads((source / "manifest.json").read_bytes())
    spoil(document)
    (source / "manifest.json").write_bytes(sealed(document))

    with pytest.raises(Damaged, match=one_line(reason)):
        read_bundle(Folder(source), "export")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"format": "prb', "cannot be read"),
        (b"{}", "is not a prbench-export"),
        (b"[]", "is not a prbench-export"),
        (
            b'{"format": "x",\n"version": 1, "version": 1}',
            "key 'version' appears twice in the object that begins",
        ),
        (b"[" * 100_000, "cannot be read"),
        (b'{"format": "prbench-export", "version": 2, "files": []}', "was changed"),
    ],
)
def test_what_is_no_manifest_is_refused_in_one_line(content, reason):
    with pytest.raises(Damaged, match=one_line(reason)):
        parse_manifest(content, "manifest.json", "export")


def test_every_flipped_bit_of_a_manifest_is_found(source):
    written(source, Folder(source), "backup")
    content = (source / "backup.json").read_bytes()
    bits = random.Random(3)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << bits.randrange(8)
        with pytest.raises(Damaged):
            parse_manifest(bytes(damaged), "backup.json", "backup")


OLD_BACKUP = {
    "format": "prbench-backup",
    "version": 1,
    "made_at": "2026-11-01",
    "files": [
        {
            "path": "a",
            "stored_as": "files/a.0000000000000000",
            **FILE,
        }
    ],
}


@pytest.mark.parametrize(
    "content", [sealed(OLD_BACKUP), json.dumps(OLD_BACKUP).encode()]
)
def test_manifests_of_backups_of_november_are_read_with_their_hash_or_without(
    content,
):
    bundle = parse_manifest(content, "backup.json", "backup")

    assert [file.name for file in bundle.files] == ["files/a.0000000000000000"]


def test_a_changed_manifest_of_november_is_refused():
    content = sealed(OLD_BACKUP).replace(b'"version": 1', b'"version": 0')

    with pytest.raises(Damaged, match="was changed"):
        parse_manifest(content, "backup.json", "backup")


def test_an_export_of_version_1_is_refused():
    content = sealed(
        {
            "format": "prbench-export",
            "version": 1,
            "tables": [],
        }
    )

    with pytest.raises(Damaged, match="is of version 1; write the export again"):
        parse_manifest(content, "manifest.json", "export")


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("backup/prbench", "backup/prbench"),
        ("file:///mnt/backup", "/mnt/backup"),
        ("local:///mnt/x/", "/mnt/x"),
        ("FILE:///mnt/x", "/mnt/x"),
    ],
)
def test_a_path_and_an_address_of_a_file_are_folders(address, path):
    assert open_location(address) == Path(path)


SECRETS = {
    "s3://key:planted-secret@bucket/prefix": "s3",
    "s3://key:planted/secret@bucket": "s3",
    "sftp://user:planted@host/folder": "sftp",
    "https://host/container?sig=planted": "https",
    "s4://key:planted@bucket": "s4",
}


@pytest.mark.parametrize("address", SECRETS)
@pytest.mark.parametrize(
    "command", ["backup", "restore", "export", "import warehouse", "publish"]
)
def test_keys_in_an_address_are_refused(address, command, tmp_path, capsys):
    location = ("--warehouse", str(tmp_path / "data"))

    assert main([*command.split(), address, *location, "-v"]) == 2

    message = capsys.readouterr().err
    assert "planted" not in message
    reason = f"prbench: {SECRETS[address]}://...: an address must hold no keys"
    assert message.splitlines()[-1].startswith(reason)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (
            "s4://bucket/x",
            "s4:// is not known; name a folder, or an address such as s3://bucket/prefix",
        ),
        ("simplecache::memory://bucket/x", "simplecache::memory:// is not known"),
        (
            "s3:/bucket/x",
            "an address has two slashes: s3://bucket/x; a folder, ./s3:/bucket/x",
        ),
        (
            "memory://",
            "has no bucket or folder; name one, such as memory://bucket/prefix",
        ),
        ("memory://bucket/pre[12]", "*, [ and ] have a meaning in addresses"),
    ],
)
def test_an_address_to_nowhere_is_refused(address, reason, tmp_path, capsys):
    assert main(["backup", address, "--warehouse", str(tmp_path)]) == 2

    message = capsys.readouterr().err
    assert message.startswith(f"prbench: {address}: {reason}")
    assert message.count("\n") == 1


def test_a_store_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gcsfs", None)

    advice = r".*gcsfs.* \(s3://: `uv sync --extra s3`\)"
    with pytest.raises(UsageError, match=rf"gs://b/x: .* is not installed; {advice}"):
        open_location("gs://b/x")


def test_what_a_library_raises_is_one_line_without_secrets(store, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-planted-secret-value")

    def fail(path):
        raise RuntimeError(f"denied\nwith a-planted-secret-value for {path}")

    monkeypatch.setattr(store.filesystem, "cat_file", fail)
    with pytest.raises(PipelineError) as caught:
        store.read("name")

    message = str(caught.value)
    assert message.startswith("memory://bucket/prefix: RuntimeError: denied with ")
    assert message.endswith("check address, network and keys")
    assert "planted" not in message
    assert "\n" not in message


def test_names_of_files_are_those_below_the_prefix_alone(store, tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    store.put({"a/b": tmp_path / "file", "c": tmp_path / "file"})
    neighbour = Store(
        "memory://bucket/prefix-2", store.filesystem, "/bucket/prefix-2"
    )
    neighbour.write("d", b"other")

    assert store.files() == {"a/b": 5, "c": 5}
    assert store.below("a").files() == {"b": 5}


def test_a_removed_file_is_gone(store):
    store.write("a", b"12345")
    store.remove(["a"])

    assert store.read("a") is None
