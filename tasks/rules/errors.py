"""Errors that a user can cause, each in one line: the problem, its location, and the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class PipelineError(Exception):
    """A failure that the user sees as one line; the process exits with `exit_code`."""

    exit_code = 1


class UsageError(PipelineError):
    """Wrong usage or configuration: nothing was started."""

    exit_code = 2


@contextmanager
def disk_errors(
    target: object, advice: str = "free some space, or choose another folder"
) -> Iterator[None]:
    """Turn an error of the disk on reading or writing a target into one line."""
    try:
        yield
    except OSError as error:
        file = ""
        if error.filename not in {None, target, str(target)}:
            file = f" ({error.filename})"
        raise PipelineError(f"{target}: {error.strerror}{file}; {advice}") from error


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes, outermost first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def install_extra(name: str) -> str:
    """Return the command that installs an extra of this project, in a clone or a package."""
    if (Path(__file__).parents[2] / "pyproject.toml").is_file():
        return f"`uv sync --extra {name}`"
    return f"`pip install 'prbench-pipeline[{name}]'`"


def from_home(path: str | Path, setting: str) -> Path:
    """Return a path with the home folder instead of a leading `~` or `~user`.

    `setting` is the source of the path.

    Raises:
        UsageError: there is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"{setting}: {path}: there is no such user; write the whole path"
        ) from error
