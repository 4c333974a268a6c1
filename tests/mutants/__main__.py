"""`python -m tests.mutants`: apply the kept mutants to the source, and count those that tests notice.

`rules.json`, `llm.json` and `sql.json` keep the mutants and what the last run showed. A mutant
that changes no result has the reason beside it (`equivalent_because`) and is not run. The command
exits with 1 if a mutant is not noticed that was noticed before, or if the text of one is gone: it
needs a successor with the same fault. `--keep` keeps the outcomes of this run, `--gone` only lists
the mutants whose text is gone. Only copies of the source are changed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.mutants.making import PARTS, ROOT, Mutant

LIMIT_S = 600
"""The time after which a mutant counts as noticed: it may make a test run forever."""
NOTICED = "noticed"
NOT_NOTICED = "not noticed"
GONE = "gone"
EQUIVALENT = "equivalent"


def main() -> int:
    """Run the kept mutants, two at a time, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the outcomes of this run",
    )
    parser.add_argument(
        "--gone",
        action="store_true",
        help="only list mutants whose text is gone",
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="PATH",
        help="only mutants of files whose path begins so",
    )
    options = parser.parse_args()
    kept_outcomes = kept_mutants()
    chosen = [
        mutant for mutant in kept_outcomes if mutant.file.startswith(options.only)
    ]
    if options.gone:
        outcomes = {mutant: GONE for mutant in chosen if mutant.applied(ROOT) is None}
    else:
        outcomes = outcomes_of(chosen)
    report(outcomes, kept_outcomes)
    if options.keep:
        keep(kept_outcomes | outcomes)
    is_worse = any(
        kept_outcomes.get(mutant) == NOTICED and outcome != NOTICED
        for mutant, outcome in outcomes.items()
    )
    return 1 if is_worse or GONE in outcomes.values() else 0


def kept_mutants() -> dict[Mutant, str]:
    """Return the kept mutants with the outcome of the run that kept them."""
    outcomes = {}
    for part in PARTS:
        for row in json.loads(_file_of(part).read_text()):
            outcome = row.pop("outcome")
            outcomes[Mutant(**row)] = outcome
    return outcomes


def keep(outcomes: Mapping[Mutant, str]):
    """Write the mutants of each part with their outcomes."""
    for part in PARTS:
        rows = [
            {**mutant.as_row(), "outcome": outcome}
            for mutant, outcome in outcomes.items()
            if mutant.part == part
        ]
        text = json.dumps(
            rows,
            indent=1,
            ensure_ascii=False,
        )
        _file_of(part).write_text(text + "\n")


def _file_of(part: str) -> Path:
    return Path(__file__).with_name(f"{part}.json")


def report(outcomes: Mapping[Mutant, str], kept_outcomes: Mapping[Mutant, str]):
    """Print the mutants that were not noticed, the numbers of each part, and the two shares."""
    for mutant, outcome in outcomes.items():
        if outcome in {NOT_NOTICED, GONE}:
            note = " (was noticed)" if kept_outcomes.get(mutant) == NOTICED else ""
            print(
                f"{outcome}{note}: {mutant.file}\n  - {mutant.before}\n  + {mutant.after}"
            )
    counts = Counter((mutant.part, outcome) for mutant, outcome in outcomes.items())
    for (part, outcome), n in sorted(counts.items()):
        print(f"{part}: {n} {outcome}")
    n_by_outcome = Counter(outcomes.values())
    n_marked = n_by_outcome[EQUIVALENT]
    n_run = len(outcomes) - n_marked
    if n_run:
        print(f"{n_by_outcome[NOTICED] / n_run:.1%} of {n_run} are noticed")
        print(f"{n_marked / len(outcomes):.1%} are marked as equivalent")


def outcomes_of(mutants: list[Mutant]) -> dict[Mutant, str]:
    """Apply each mutant to a copy of the source, run its tests, and return what they showed."""
    copies = Queue()
    with tempfile.TemporaryDirectory() as scratch:
        worlds = Path(scratch) / "worlds"
        subprocess.run(
            [sys.executable, "-m", "tests.mutants.marts", "--build", worlds],
            cwd=ROOT,
            check=True,
        )
        for number in range(os.cpu_count() or 1):
            # With compiled files: copies keep the times of their sources.
            copy = shutil.copytree(ROOT, Path(scratch) / str(number), ignore=_ignored)
            copies.put(Path(copy))
        started = time.monotonic()

        def run(mutant):
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
            outcomes = dict(zip(mutants, pool.map(run, mutants), strict=True))
        print(
            f"\n{len(mutants)} mutants in {time.monotonic() - started:.0f} s",
            file=sys.stderr,
        )
    return outcomes


def _ignored(folder: str, names: list[str]) -> set[str]:
    hidden = {name for name in names if name.startswith(".")}
    return hidden | ({"data"} if Path(folder).name == "warehouse" else set())


def _outcome(mutant: Mutant, copy: Path, worlds: Path) -> str:
    if mutant.equivalent_because:
        return EQUIVALENT
    applied = mutant.applied(copy)
    if applied is None:
        return GONE
    path, text = applied
    original = path.read_text()
    times = path.stat()
    path.write_text(text)
    commands = []
    if mutant.tests:
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        commands.append(["pytest", *options, *mutant.tests])
    if mutant.suffix == ".sql":
        commands.append(["tests.mutants.marts", worlds])
    try:
        for command in commands:
            run = subprocess.run(
                [sys.executable, "-m", *command],
                cwd=copy,
                env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
            if run.returncode != 0:
                return NOTICED
        return NOT_NOTICED
    except subprocess.TimeoutExpired:
        return NOTICED
    finally:
        path.write_text(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


if __name__ == "__main__":
    sys.exit(main())
