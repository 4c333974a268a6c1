"""A piece of work that is killed at every step of its writing, each time on a copy of the same
folder.
"""

import signal
import subprocess
import sys
from pathlib import Path

from tests.kit import ROOT

_SCRIPT = """
import os, shutil, signal, sys
from pathlib import Path
{imports}

STEPS = {{"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}}

def kill_at(step, place):
    n_left = step

    def count_step(event, arguments):
        nonlocal n_left
        if event in STEPS or (event == "open" and arguments[1] == "wb"):
            path = str(arguments[0])
            # A relative path comes with a descriptor of a folder inside the place.
            if not os.path.isabs(path) or path.startswith(str(place)):
                n_left -= 1
                if n_left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count_step)

base, folder = map(Path, sys.argv[1:])
for step in range(1, 300):
    place = Path(shutil.copytree(base, folder / str(step)))
    child = os.fork()
    if child == 0:
        kill_at(step, place)
        {work}
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code)
    if code != -signal.SIGKILL:
        break
"""


def killed_at_every_step(
    imports: str,
    work: str,
    base: Path,
    folder: Path,
) -> list[Path]:
    """Return copies of a folder: in the n-th, some work was killed at its n-th step; in the last one
    it was finished.

    Args:
        imports: lines of code that import what the work needs.
        work: one statement that works in the folder `place`, and prints nothing: the script prints
            the exit code of each attempt.
        base: the folder of which the copies are made.
        folder: of the copies.
    """
    script = _SCRIPT.format(imports=imports, work=work)
    process = subprocess.run(
        [sys.executable, "-c", script, base, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    codes = [int(line) for line in process.stdout.split()]
    assert codes == [-signal.SIGKILL] * (len(codes) - 1) + [0], process.stderr
    return [folder / str(step) for step in range(1, len(codes) + 1)]
