"""A supervised process with one run under way, as `prbench serve` has them: `python -m tests.flows.supervised`.

What happens is written to a file, a line each, in the order in which it happens.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from flows.supervisor import Patience, supervise
from tasks.rules.errors import PipelineError, UsageError

ENGINE = """
import os, signal, sys, time
def end(number, frame):
    if sys.argv[3] != "stubborn":
        time.sleep(0.3)
        print("run ended", flush=True)
        sys.exit()
signal.signal(signal.SIGTERM, end)
print(f"run begun by process {os.getpid()}", flush=True)
while True:
    time.sleep(0.1)
"""
"""Like an engine of Prefect it has its module among its arguments."""


def work(book: Path, how: str) -> None:
    """Begin a run, and wait until somebody interrupts."""
    if how == "refusing":
        raise UsageError("the deployment is another's")
    with book.open("a") as log:
        subprocess.Popen([sys.executable, "-c", ENGINE, "-m", "prefect.engine", how], stdout=log)
    while not book.read_text():
        time.sleep(0.02)
    if how == "dying":
        os._exit(7)
    try:
        while True:
            time.sleep(0.1)
    finally:
        with book.open("a") as log:
            log.write("work ended\n")


if __name__ == "__main__":
    path, kind, engines_s = sys.argv[1:]
    try:
        supervise(work, Path(path), kind, patience=Patience(engines_s=float(engines_s), work_s=10.0))
    except PipelineError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
