"""`python -m tests.golden`: show differences from the kept outputs, and exit with 1 if any;
`--keep` replaces them.

`--whole DIR` writes all outputs in full, so that two checkouts can be compared with `diff -r`.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.golden.outputs import collect, differences, keep, kept

parser = argparse.ArgumentParser(
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)
parser.add_argument("--keep", action="store_true", help="replace what is kept")
parser.add_argument(
    "--whole",
    type=Path,
    metavar="DIR",
    help="write all outputs, whole, to this folder",
)
options = parser.parse_args()
os.environ["PRBENCH_PREFECT"] = "off"
with tempfile.TemporaryDirectory() as scratch:
    outputs = collect(Path(scratch))
before = kept()
changes = [
    line
    for name in sorted(before.keys() | outputs.keys())
    for line in differences(name, before.get(name, []), outputs.get(name, []))
]
print(*changes, sep="\n")
if options.whole:
    for name, lines in outputs.items():
        path = options.whole / f"{name.replace(chr(39), '')}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
if options.keep:
    keep(outputs)
sys.exit(1 if changes and not options.keep else 0)
