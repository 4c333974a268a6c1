"""`python -m tests.mutants`: apply the kept mutants to the source, and count those that the tests
notice.

It exits with 1 if a mutant survives that was killed when the set was kept. `--draw` makes a new
set, `--keep` keeps the results of this run. Only copies of the source are changed.
"""

import argparse
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.mutants.making import ROOT, Mutant, drawn

KEPT = Path(__file__).with_name("mutants.json")
_LIMIT_S = 600
"""The time after which a mutant counts as killed: it may make a test run forever."""
_LIVES = "lives"
_KILLED = "killed"
_GONE = "gone"


def main() -> int:
    """Run all mutants, two at a time, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draw", action="store_true", help="draw a new set")
    parser.add_argument("--keep", action="store_true", help="keep the set and what this run found")
    parser.add_argument(
        "--only",
        default="",
        metavar="PATH",
        help="only mutants of files whose path begins so",
    )
    options = parser.parse_args()
    kept = (
        {}
        if options.draw
        else {Mutant(**each["mutant"]): each["outcome"] for each in json.loads(KEPT.read_text())}
    )
    mutants = drawn() if options.draw else list(kept)
    chosen = [each for each in mutants if each.file.startswith(options.only)]
    outcomes = _run(chosen)
    for (part, outcome), n in sorted(
        Counter((each.part, outcomes[each]) for each in chosen).items()
    ):
        print(part, outcome, n)
    worse = [each for each in chosen if kept.get(each) == _KILLED and outcomes[each] != _KILLED]
    for each in chosen:
        if outcomes[each] != _KILLED:
            state = f"{outcomes[each]}{' (was killed)' if each in worse else ''}"
            print(f"{state}: {each.file}\n  - {each.before}\n  + {each.after}")
    if options.keep:
        actual = [
            {"mutant": dataclasses.asdict(each), "outcome": outcomes.get(each, kept.get(each))}
            for each in mutants
        ]
        KEPT.write_text(json.dumps(actual, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if worse else 0


def _run(mutants: list[Mutant]) -> dict[Mutant, str]:
    copies: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as scratch:
        worlds = Path(scratch) / "worlds"
        subprocess.run(
            [sys.executable, "-m", "tests.mutants.marts", "--build", worlds], cwd=ROOT, check=True
        )
        for number in range(os.cpu_count() or 1):
            # With compiled files: copies keep the times of their sources.
            copies.put(Path(shutil.copytree(ROOT, Path(scratch) / str(number), ignore=_ignored)))
        started = time.monotonic()

        def run(mutant: Mutant) -> str:
            copy = copies.get()
            try:
                return _outcome(mutant, copy, worlds)
            finally:
                copies.put(copy)
                print(
                    ".",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )

        with ThreadPoolExecutor(copies.qsize()) as pool:
            actual = dict(zip(mutants, pool.map(run, mutants), strict=True))
        print(f"\n{len(mutants)} mutants in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return actual


def _ignored(folder: str, names: list[str]) -> set[str]:
    hidden = {name for name in names if name.startswith(".")}
    return hidden | ({"data"} if Path(folder).name == "warehouse" else set())


def _outcome(mutant: Mutant, copy: Path, worlds: Path) -> str:
    applied = mutant.applied(copy)
    if applied is None:
        return _GONE
    path, text = applied
    original = path.read_text(encoding="utf-8")
    times = path.stat()
    path.write_text(text, encoding="utf-8")
    tests = ["pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *mutant.tests]
    command = [sys.executable, "-m", *(tests if mutant.tests else ["tests.mutants.marts", worlds])]
    try:
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
        return _LIVES if done.returncode == 0 else _KILLED
    except subprocess.TimeoutExpired:
        return _KILLED
    finally:
        path.write_text(original, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


if __name__ == "__main__":
    sys.exit(main())
