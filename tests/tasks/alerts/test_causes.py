"""The causes of low coverage: one alert for each, and none about what followed from it."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.alerts.causes import control_alerts, coverage_alerts, stops_of
from tasks.run.coverage import CoverageCell, LowCoverage
from tasks.run.writing import StageReport
from tests.kit import endpoint, job_on
from tests.tasks.alerts.conftest import NIGHT

ADDRESS = "http://127.0.0.1:9/v1"
MODELS = ("alpha", "beta", "gamma")
JUDGES = ("strict", "other", "third")
SILENT = "no reply for 60 s, the last failure: connection refused"
REFUSED = "wrong key; check the key: AN_API_KEY is set"
BAR = 0.99


def cell(
    model: str, judge: str | None = None, trial: int = 1, done: int = 0, due: int = 40, **of: Any
) -> CoverageCell:
    """A cell; `of` are the numbers of its failures by status."""
    return CoverageCell(
        model, "base", trial, judge, judge and 1, due, due, done, failures=Counter(of)
    )


def low(*cells: CoverageCell, without_import: tuple[str, ...] = ()) -> LowCoverage:
    return LowCoverage(BAR, [each for each in cells if each.due_share < BAR], list(without_import))


def reports(**stopped: str) -> list[StageReport]:
    """The reports of a night with stopped endpoints: the name of the model -> why."""
    stage = {"gamma": "sample"}
    return [
        StageReport(stage.get(name, "judge"), stopped=[f"hosted_vllm/{name} at {ADDRESS}: {why}"])
        for name, why in stopped.items()
    ]


def stops(**stopped: str) -> Any:
    job = NIGHT.with_settings(
        models=job_on(
            "sample", NIGHT.warehouse, models=[endpoint(model, ADDRESS) for model in MODELS]
        ).settings.models,
        judges=job_on(
            "sample", NIGHT.warehouse, judges=[endpoint(judge, ADDRESS) for judge in JUDGES]
        ).settings.judges,
    )
    return stops_of(job, reports(**stopped))


def night_without(model: str = "", judge: str = "", failures: int = 0) -> LowCoverage:
    """The cells of two trials in which a model has no responses and a judge decided nothing."""
    cells = []
    for trial in (1, 2):
        for each in MODELS:
            is_there = each != model
            cells.append(
                cell(
                    each,
                    None,
                    trial,
                    done=40 * is_there,
                    provider_error=0 if is_there else failures,
                )
            )
            for of_judge in JUDGES:
                done = 400 * (is_there and of_judge != judge)
                cells.append(cell(each, of_judge, trial, done=done, due=400))
    return low(*cells)


def test_one_refused_model_is_one_alert_and_not_eighteen() -> None:
    incomplete = night_without("gamma")
    assert len(incomplete.cells) == 8

    (alert,) = coverage_alerts(incomplete, stops(gamma=REFUSED))

    assert alert.headline == "model gamma refused all calls"
    expected = (
        f"model gamma (hosted_vllm/gamma at {ADDRESS}) refused all calls: 0 of 80 responses;"
        f" {REFUSED}"
    )
    assert alert.line == expected
    assert alert.subject == "gamma"
    assert incomplete.lines == alert.facts["warnings"]


def test_endpoints_that_gave_no_reply_are_alerts_of_their_own() -> None:
    model, judge = coverage_alerts(
        night_without("gamma", "strict"), stops(gamma=SILENT, strict=SILENT)
    )

    assert model.headline == "model gamma gave no reply"
    assert judge.headline == "judge strict gave no reply"
    # The verdicts on two other models in two trials, and those on the silent one.
    assert "0 of 2,400 verdicts" in judge.line


def test_a_model_that_was_not_stopped_but_had_no_reply_is_the_cause_of_its_missing_verdicts() -> (
    None
):
    errors = {("model", "gamma"): "HTTP 503: overloaded"}

    (alert,) = coverage_alerts(night_without("gamma", failures=40), errors=errors)

    expected = (
        "model gamma gave no reply: 0 of 80 responses, 80 provider_error; most often HTTP 503:"
        " overloaded"
    )
    assert alert.line == expected


def test_an_endpoint_that_stopped_half_way_is_described_as_such() -> None:
    incomplete = low(cell("gamma", done=30), cell("gamma", "strict", done=300, due=400))

    (silent,) = coverage_alerts(incomplete, stops(gamma=SILENT))
    (refused,) = coverage_alerts(incomplete, stops(gamma=REFUSED))

    assert silent.headline == "model gamma stopped replying"
    assert refused.headline == "model gamma refused further calls"


def test_a_judge_that_fails_by_itself_has_an_alert_also_where_a_model_lacks_responses() -> None:
    incomplete = low(
        cell("gamma", refused=40),
        cell("gamma", "strict", due=400),
        cell(
            "alpha",
            "other",
            done=300,
            due=400,
            parse_error=100,
        ),
    )

    model, judge = coverage_alerts(incomplete)

    assert model.line == "model gamma stayed below the coverage bar: 0 of 40 responses, 40 refused"
    assert (
        judge.line
        == "judge other stayed below the coverage bar: 300 of 400 verdicts, 100 parse_error"
    )


def test_what_a_run_at_its_budget_has_not_begun_is_no_alert_but_what_failed_is() -> None:
    incomplete = low(
        cell("alpha", done=10), cell("alpha", "strict", due=400), cell("beta", done=10, refused=10)
    )

    (alert,) = coverage_alerts(incomplete, is_cut_short=True)

    assert alert.subject == "beta"


def test_a_label_without_imported_responses_is_an_alert() -> None:
    (alert,) = coverage_alerts(low(without_import=("delta",)))

    assert alert.headline == "model delta got no imported responses"
    assert "prbench import responses" in alert.line


def test_stops_are_those_of_the_callee_whose_endpoint_and_limits_it_is() -> None:
    assert [str(stop.callee) for stop in stops(gamma=SILENT)] == ["model gamma"]
    assert [str(stop.callee) for stop in stops(strict=SILENT)] == ["judge strict"]
    assert stops(alpha=SILENT) == []  # a judge of that name was stopped, and there is none


@pytest.mark.parametrize(("n_decided", "n_alerts"), [(40, 0), (39, 1), (0, 1)])
def test_a_control_set_below_the_bar_is_an_alert(n_decided: int, n_alerts: int) -> None:
    sets = [
        {
            "judge": "strict",
            "n_decided": n_decided,
            "n_members": 40,
        }
    ]

    assert n_alerts == len(control_alerts(sets, BAR))
    assert control_alerts(sets, 0.5 if n_decided else 0.0) == []
    assert control_alerts(sets, BAR, {"strict"}) == []


numbers = st.integers(0, 40)
labels = st.sampled_from(MODELS)


@st.composite
def cells(draw: st.DrawFn) -> CoverageCell:
    done = draw(numbers)
    failed = draw(st.integers(0, 40 - done))
    judge = draw(st.sampled_from([None, *JUDGES]))
    return cell(draw(labels), judge, draw(st.integers(1, 2)), done=done, provider_error=failed)


@given(
    st.lists(cells(), max_size=12),
    st.dictionaries(st.sampled_from(["gamma", "strict"]), st.just(SILENT)),
)
def test_low_coverage_is_never_without_an_alert_and_nobody_has_two(
    drawn: list[CoverageCell], stopped: dict[str, str]
) -> None:
    incomplete = low(*drawn)

    alerts = coverage_alerts(incomplete, stops(**stopped))

    assert bool(incomplete.cells) == bool(alerts)
    names = [alert.whom for alert in alerts]
    assert sorted(set(names)) == sorted(names)
