"""Where data is stored: the folder of the warehouse, and what chose it."""

import os
from pathlib import Path

from tasks.rules.errors import UsageError, from_home
from warehouse import other_content

VARIABLE = "PRBENCH_WAREHOUSE"
_DEFAULT = Path("warehouse", "data")


def warehouse_folder(option: Path | None, configured: str | None, config_file: Path | None) -> tuple[Path, str]:
    """The absolute path of the warehouse's folder, and what chose it; the folder need not exist yet.

    Args:
        option: what `--warehouse` says.
        configured: what the configuration's `warehouse` says; a relative path is relative to the configuration file.
        config_file: the configuration file; None: there is none, and the default is in the current folder.

    Raises:
        UsageError: the path is that of a file or of a folder with something else in it, leads through a file, or
            begins in the home folder of nobody.
    """
    beside = config_file.parent if config_file else Path()
    from_environment = os.environ.get(VARIABLE)
    if option is not None:
        given, source = from_home(option, "--warehouse"), "--warehouse"
    elif configured is not None:
        source = f"`warehouse` in {config_file}"
        given = beside / from_home(configured, source)
    elif from_environment:
        given, source = from_home(from_environment, VARIABLE), VARIABLE
    else:
        given, source = beside / _DEFAULT, f"default, beside {config_file}" if config_file else "default"
    folder = given.absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir():
        raise UsageError(f"warehouse {folder} ({source}): {existing} is a file; choose a folder with --warehouse")
    if (other := other_content(folder)) is not None:
        raise UsageError(
            f"warehouse {folder} ({source}): holds {other} and is no warehouse; choose an empty or new folder with "
            "--warehouse"
        )
    return folder, source
