"""The figures of benchmarks: what is said of a change, and what is kept."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figure, compared, report

BUILD = Figure("a build", 4.6, "a plain copy", 2.0)


def kept(ratio: float, **more: str) -> dict[str, dict[str, object]]:
    return {"a build": {"ratio": ratio, "baseline": "a plain copy", "unit": "CPU s", **more}}


@pytest.mark.parametrize(
    ("ratio", "says"),
    [(1.9, "was 1.90: 21% more"), (4.6, "was 4.60: 50% less"), (2.2, "was 2.20: no change beyond 10%")],
)
def test_a_ratio_is_compared_with_the_kept_one(ratio: float, says: str) -> None:
    assert [f"a build: 2.30 of a plain copy (4.6 CPU s), {says}"] == compared([BUILD], kept(ratio))


@pytest.mark.parametrize("earlier", [{}, kept(1.9, baseline="another copy"), kept(1.9, unit="ms")])
def test_a_figure_without_the_same_baseline_and_unit_is_not_compared(earlier: dict[str, dict[str, object]]) -> None:
    (line,) = compared([BUILD], earlier)

    assert line.endswith("nothing kept to compare with")


def test_a_kept_figure_that_was_not_measured_is_named() -> None:
    assert ["a build: was 1.90, not measured now"] == compared([], kept(1.9))


def test_figures_are_kept_only_if_asked_and_those_of_other_benchmarks_stay(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    report("one", [BUILD], must_keep=True, path=path)
    first = path.read_bytes()

    report("other", [BUILD], must_keep=False, path=path)
    unasked = path.read_bytes()
    report("other", [Figure("a build", 9.0, "a plain copy", 2.0)], must_keep=True, path=path)

    assert first == unasked
    assert {"one": 2.3, "other": 4.5} == {
        name: figures["a build"]["ratio"] for name, figures in json.loads(path.read_text()).items()
    }
    assert "no change" in report("one", [BUILD], must_keep=False, path=path)
