"""The folders of the report import one another in one direction."""

from tests.test_architecture import MODULES

_REPORT = "tasks.report."
_LEVELS = (("content",), ("drawing",), ("pages", "rendering"), ("drilldown",))
"""The folders, lowest first; the modules beside them are above all of them."""


def _level(name: str) -> int:
    folder = name.removeprefix(_REPORT).split(".")[0]
    return next((number for number, folders in enumerate(_LEVELS) if folder in folders), len(_LEVELS))


def test_no_folder_of_the_report_imports_one_beside_or_above_it() -> None:
    wrong = [
        f"{name} imports {used}"
        for name, imports in MODULES.items()
        for used in imports
        if name.startswith(_REPORT) and used.startswith(_REPORT) and _level(name) < len(_LEVELS)
        if _level(name) <= _level(used) and name.split(".")[2] != used.split(".")[2]
    ]

    assert [] == wrong
