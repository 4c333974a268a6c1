"""Declared expectations: names that people configure, documented bounds, and a benchmark's own
checks.
"""

from collections import defaultdict
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import expectations
from expectations import CHECKS, SUITES, Expectation, all_expectations, run_suite
from tasks.benchmarks import benchmark_names, load_benchmark

NAMES = {
    "category_known",
    "criteria_per_task",
    "labels_known",
    "positive_criterion",
    "prompt_not_empty",
    "response_not_empty",
    "response_status",
    "title_not_empty",
    "title_once",
    "turns_contiguous",
    "unique_criterion_id",
    "unique_task_id",
    "verdict_count",
    "verdict_has_criterion",
    "verdict_has_response",
    "verdict_value",
    "weight_class_known",
    "weight_in_band",
    "weight_range",
}
"""Names of checks; configurations use them, so none may be renamed."""
OWN = {
    "table": "criteria",
    "expectation": "ExpectColumnValueLengthsToBeBetween",
    "meaning": "a title is short",
    "severity": "warning",
    "column": "title",
    "max_value": 9,
}
EXPECTATIONS = {
    name: all_expectations(load_benchmark(name).invariants)
    for name in benchmark_names()
}
"""Benchmark -> its expectations."""
ALL = list(chain.from_iterable(EXPECTATIONS.values()))


def test_the_checks_have_the_names_that_configurations_use():
    assert {expectation.check for expectation in ALL} == NAMES


def test_the_readme_names_every_check_and_every_bound():
    readme = Path(expectations.__file__).with_name("README.md")
    text = readme.read_text()
    bounds = {
        name for check in CHECKS.values() for name in signature(check).parameters
    }

    assert [name for name in NAMES | bounds if f"`{name}`" not in text] == []


def test_every_check_belongs_to_one_suite_and_has_one_severity():
    kinds = defaultdict(set)
    for expectation in ALL:
        kinds[expectation.check].add((expectation.suite, expectation.severity))

    assert max(map(len, kinds.values())) == 1
    assert {expectation.suite for expectation in ALL} == set(SUITES)


def test_no_two_expectations_of_a_benchmark_are_stored_alike():
    for name, declared in EXPECTATIONS.items():
        identities = {(item.check, item.text, item.table) for item in declared}
        assert len(identities) == len(declared), name


def of_ingest(invariants: dict[str, Any]) -> list[Expectation]:
    return [
        expectation
        for expectation in all_expectations(invariants)
        if expectation.suite == "ingest"
    ]


def test_an_expectation_is_stored_as_the_call_that_makes_it():
    [expectation] = of_ingest({"criteria_per_task": {"fewest": 10, "most": 30}})

    arguments = "column='n_criteria', min_value=10, max_value=30"
    assert expectation.text == f"ExpectColumnValuesToBeBetween({arguments})"
    assert expectation.meaning == "a task has 10 to 30 criteria"


@pytest.mark.parametrize(
    ("invariants", "reason"),
    [
        (
            {"weigth_range": {"lowest": 1}},
            "there is no check weigth_range; known are category_known",
        ),
        ({"weight_range": {"lowest": 1}}, "weight_range: .* 'highest'"),
        ({"positive_criterion": {"fewest": 1}}, "positive_criterion: .* 'fewest'"),
        (
            {"short": {**OWN, "table": "verdicts"}},
            "short: `table` is criteria or rubrics",
        ),
        (
            {"short": {**OWN, "severity": "quarantine"}},
            "short: .*`severity` is critical or warning",
        ),
        (
            {"short": {"expectation": "ExpectColumnValuesToNotBeNull"}},
            "short: .* 'table' and 'meaning'",
        ),
    ],
)
def test_an_invariant_that_cannot_be_checked_is_refused_by_name(invariants, reason):
    with pytest.raises(ValueError, match=reason):
        all_expectations(invariants)


@pytest.mark.slow
def test_a_benchmark_can_declare_a_check_of_its_own():
    [declared] = of_ingest({"short_titles": OWN})
    frame = pd.DataFrame(
        {
            "key": ["k1", "k2"],
            "task_id": ["t1", "t2"],
            "title": ["short", "much too long"],
        }
    )
    [finding] = run_suite([declared], lambda table: frame)

    assert declared.check == "short_titles"
    assert declared.severity == "warning"
    assert declared.meaning == "a title is short"
    assert [failure.key for failure in finding.failures] == ["k2"]
