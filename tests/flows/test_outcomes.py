"""How a run ends: the outcome that its reports amount to, and the state that Prefect shows."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flows.recorded import about, artifact_key, message_of, state_of, tags_of, warehouse_name
from flows.run.outcomes import ENDINGS, outcome_of
from tasks.run.writing import StageReport
from tests.kit import job_on


@pytest.mark.parametrize(
    ("applying", "outcome"),
    [
        ({"is_at_budget", "is_at_stop_time", "has_failed", "is_below_bar"}, "stopped_at_budget"),
        ({"is_at_stop_time", "has_failed", "is_below_bar"}, "stopped_at_time"),
        ({"has_failed", "is_below_bar"}, "failed"),
        ({"is_below_bar"}, "below_bar"),
        (set[str](), "done"),
    ],
)
def test_of_the_outcomes_that_apply_the_first_in_order_of_exit_codes_counts(applying: set[str], outcome: str) -> None:
    assert outcome_of([StageReport("judge", **{name: True}) for name in sorted(applying)]) == outcome  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("failures", "n_rows", "more", "outcome"),
    [
        ({"provider_error": 3, "timeout": 1}, 4, {"is_below_bar": True}, "failed"),
        ({"provider_error": 4}, 4, {"stopped": ["m: wrong key"]}, "failed"),
        ({"provider_error": 4}, 4, {}, "done"),
        ({"provider_error": 3}, 4, {"is_below_bar": True, "stopped": ["m: wrong key"]}, "below_bar"),
        ({"parse_error": 4}, 4, {"is_below_bar": True}, "below_bar"),
        ({}, 0, {"is_below_bar": True}, "below_bar"),
    ],
)
def test_a_run_fails_in_which_no_call_was_answered_and_something_is_missing_for_it(
    failures: dict[str, int], n_rows: int, more: dict[str, Any], outcome: str
) -> None:
    sampled = StageReport("sample", rows=n_rows, failures=Counter(failures))
    assert outcome_of([StageReport("ingest", rows=9), sampled, StageReport("coverage", **more)]) == outcome


def test_the_states_of_outcomes_that_are_not_completed_have_names_of_their_own() -> None:
    names = [ending.state_name for ending in ENDINGS.values()]
    assert len(set(names)) == len(names)
    assert [outcome for outcome, ending in ENDINGS.items() if ending.state_name == "Completed"] == ["done"]


@pytest.mark.parametrize("outcome", ENDINGS)
def test_a_state_has_the_name_of_its_outcome_and_says_what_to_know(outcome: str) -> None:
    warned = [StageReport("sample"), StageReport("judge", notes=["9 made"], warnings=["half is missing"])]
    state = state_of(outcome, message_of(warned, outcome))
    assert (state.type.value, state.name, state.message) == (*ENDINGS[outcome][1:], "half is missing")
    assert message_of([StageReport("judge", notes=["9 made"])], outcome) == "9 made"
    assert message_of([], outcome) == ENDINGS[outcome].state_name


@pytest.mark.parametrize(
    ("folder", "name"),
    [("/srv/evals/warehouse/data", "evals"), ("/srv/evals/nights", "nights"), ("/warehouse/data", "root")],
)
def test_a_warehouse_is_named_after_its_folder_or_after_the_one_with_the_default_folder(folder: str, name: str) -> None:
    assert warehouse_name(Path(folder)) == name


def test_names_tags_and_keys_tell_warehouses_and_benchmarks_apart(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path / "evals").model_copy(update={"night": "2026-11-22", "named_models": ("a", "b")})
    assert about(job) == "evals prbench 2026-11-22 a, b"
    assert tags_of(job)[:3] == ["evals", "prbench", "2026-11-22"]
    keys = {artifact_key(job_on("sample", tmp_path / place / "My Evals"), "report-link") for place in ("one", "two")}
    assert len(keys) == 2
    assert all(re.fullmatch(r"my-evals-prbench-report-link-[0-9a-f]{6}", key) for key in keys)
