"""The figures of benchmarks: what is said of a change, and what is kept."""

import json
from pathlib import Path

from tests.benchmarks.figures import Figure, compared, report

BUILD = Figure("a build", 4.6, "a plain copy", 2.0)


def test_a_ratio_is_compared_with_the_kept_one_if_baseline_and_unit_are_the_same() -> None:
    def compared_with(**kept: object) -> list[str]:
        return compared([BUILD], {"a build": {"ratio": 2.3, "baseline": "a plain copy", "unit": "CPU s"} | kept})

    now = "a build: 2.30 of a plain copy (4.6 CPU s), "
    assert [f"{now}was 1.90: 21% more"] == compared_with(ratio=1.9)
    assert [f"{now}was 4.60: 50% less"] == compared_with(ratio=4.6)
    assert [f"{now}was 2.20: no change beyond 10%"] == compared_with(ratio=2.2)
    assert [f"{now}nothing kept to compare with"] == compared_with(unit="ms")
    assert ["a build: was 1.90, not measured now"] == compared([], {"a build": {"ratio": 1.9}})


def test_figures_are_kept_only_with_the_option_and_those_of_other_benchmarks_stay(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    report("one", [BUILD], must_keep=True, path=path)
    first = path.read_bytes()
    report("other", [BUILD], must_keep=False, path=path)
    assert first == path.read_bytes()
    report("other", [Figure("a build", 9.0, "a plain copy", 2.0)], must_keep=True, path=path)

    assert {"one": 2.3, "other": 4.5} == {
        name: figures["a build"]["ratio"] for name, figures in json.loads(path.read_text()).items()
    }
    assert "no change" in report("one", [BUILD], must_keep=False, path=path)
