"""Judge templates: a name with its version, or a file of the user's."""

from pathlib import Path

from tasks.rules.conversation import PLACES, missing_places
from tasks.rules.errors import UsageError

FOLDER = Path(__file__).parent


def load_template(name: str, default: str) -> str:
    """The text of a judge template.

    Args:
        name: `default`, the name of a template in this folder, or the path of a file.
        default: the template that the benchmark declares.

    Raises:
        UsageError: there is no such template, or it lacks a place to fill.
    """
    shipped = FOLDER / f"{default if name == 'default' else name}.txt"
    path = shipped if shipped.is_file() else Path(name).expanduser()
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.txt")))
        raise UsageError(f"template: {name} is neither a file nor one of: {known}")
    text = path.read_text(encoding="utf-8")
    missing = missing_places(text)
    if missing:
        raise UsageError(f"template: {path} lacks {' and '.join(missing)}; it needs {' and '.join(PLACES)}")
    return text
