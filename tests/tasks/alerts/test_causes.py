"""The causes of low coverage: one alert for each, and none about what followed from it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.alerts.causes import Stop, control_alerts, coverage_alerts, stops_of
from tasks.run.coverage import CoverageCell, LowCoverage
from tasks.run.writing import StageReport
from tests.kit import endpoint, job_on
from tests.tasks.alerts.conftest import NIGHT

ADDRESS = "http://127.0.0.1:9/v1"
MODELS = ("alpha", "beta", "gamma")
JUDGES = ("strict", "other", "third")
SILENT = "no successful reply for 60 s, the last failure: connection refused"
REFUSED = "wrong key; check the key: AN_API_KEY is set"
BAR = 0.99


def cell(
    model: str,
    judge: str | None = None,
    *,
    n_done: int = 0,
    due: int = 40,
    **failures: int,
) -> CoverageCell:
    """A cell with the numbers of its failures by status."""
    return CoverageCell(
        model=model,
        vintage="base",
        trial=1,
        judge=judge,
        judge_trial=None if judge is None else 1,
        wanted=due,
        due=due,
        done=n_done,
        failures=Counter(failures),
    )


def low(*cells: CoverageCell) -> LowCoverage:
    return LowCoverage(BAR, [cell for cell in cells if cell.due_share < BAR], [])


def stops(stage: str, **reasons: str) -> list[Stop]:
    """The stops of a stage, from the reason by the name of the stopped model or judge."""
    job = job_on(
        "sample",
        NIGHT.warehouse,
        models=[endpoint(model, ADDRESS) for model in MODELS],
        judges=[endpoint(judge, ADDRESS) for judge in JUDGES],
    )
    reports = []
    for name, reason in reasons.items():
        line = f"hosted_vllm/{name} at {ADDRESS}: {reason}"
        reports.append(StageReport(stage, stopped=[line]))
    return stops_of(job, reports)


def night_without(
    silent_model: str,
    silent_judge: str = "",
    failures: int = 0,
) -> LowCoverage:
    """The cells of a night in which a model has no responses and a judge decided nothing."""
    cells = []
    for model in MODELS:
        if model == silent_model:
            cells.append(cell(model, provider_error=failures))
        else:
            cells.append(cell(model, n_done=40))
        for judge in JUDGES:
            is_silent = model == silent_model or judge == silent_judge
            cells.append(cell(model, judge, n_done=0 if is_silent else 400, due=400))
    return low(*cells)


def test_one_refused_model_is_one_alert_on_all_its_cells():
    incomplete = night_without("gamma")

    [alert] = coverage_alerts(incomplete, stops("sample", gamma=REFUSED))

    assert alert.headline == "model gamma refused all calls"
    assert alert.line == (
        f"model gamma (hosted_vllm/gamma at {ADDRESS}) refused all calls: 0 of 40 responses;"
        f" {REFUSED}"
    )
    assert alert.subject == "gamma"
    assert alert.facts["warnings"] == incomplete.lines


def test_endpoints_that_gave_no_reply_are_alerts_of_their_own():
    model, judge = coverage_alerts(
        night_without("gamma", "strict"),
        stops("sample", gamma=SILENT) + stops("judge", strict=SILENT),
    )

    assert model.headline == "model gamma gave no reply"
    assert judge.headline == "judge strict gave no reply"
    # The verdicts on all three models.
    assert "0 of 1,200 verdicts" in judge.line


def test_a_model_that_was_not_stopped_but_had_no_reply_is_the_cause_of_its_missing_verdicts():
    errors = {("model", "gamma"): "HTTP 503: overloaded"}

    [alert] = coverage_alerts(night_without("gamma", failures=40), errors=errors)

    assert alert.line == (
        "model gamma gave no reply: 0 of 40 responses, 40 provider_error; most often HTTP 503:"
        " overloaded"
    )


def test_an_endpoint_that_stopped_half_way_is_described_as_such():
    incomplete = low(
        cell("gamma", n_done=30), cell("gamma", "strict", n_done=300, due=400)
    )

    [silence] = coverage_alerts(incomplete, stops("sample", gamma=SILENT))
    [refusal] = coverage_alerts(incomplete, stops("sample", gamma=REFUSED))

    assert silence.headline == "model gamma stopped replying"
    assert refusal.headline == "model gamma refused further calls"


def test_a_stopped_model_with_enough_responses_does_not_hide_a_judge_that_fails():
    incomplete = low(
        cell("gamma", n_done=40),
        cell("gamma", "strict", n_done=30, due=400, parse_error=370),
    )

    [alert] = coverage_alerts(incomplete, stops("sample", gamma=REFUSED))

    assert alert.subject == "strict"


def test_a_judge_that_fails_by_itself_has_an_alert_also_where_a_model_lacks_responses():
    incomplete = low(
        cell("gamma", refused=40),
        cell("gamma", "strict", due=400),
        cell("alpha", "other", n_done=300, due=400, parse_error=100),
    )

    model, judge = coverage_alerts(incomplete)

    happened = "stayed below the coverage bar"
    assert model.line == f"model gamma {happened}: 0 of 40 responses, 40 refused"
    judge_line = f"judge other {happened}: 300 of 400 verdicts, 100 parse_error"
    assert judge.line == judge_line


def test_what_a_run_at_its_budget_has_not_begun_is_no_alert_but_what_failed_is():
    incomplete = low(
        cell("alpha", n_done=10),
        cell("alpha", "strict", due=400),
        cell("beta", n_done=10, refused=10),
    )

    [alert] = coverage_alerts(incomplete, is_cut_short=True)

    assert alert.subject == "beta"


def test_a_label_without_imported_responses_is_an_alert():
    [alert] = coverage_alerts(LowCoverage(BAR, [], ["delta"]))

    assert alert.headline == "model delta got no imported responses"
    assert "prbench import responses" in alert.line


def test_a_stop_is_of_the_model_or_judge_whose_calls_were_stopped():
    [model_stop] = stops("sample", gamma=SILENT)
    [judge_stop] = stops("judge", strict=SILENT)

    assert str(model_stop.callee) == "model gamma"
    assert str(judge_stop.callee) == "judge strict"
    assert stops("judge", alpha=SILENT) == []  # there is no judge of that name


@pytest.mark.parametrize(("n_decided", "n_alerts"), [(40, 0), (39, 1), (0, 1)])
def test_a_control_set_below_the_bar_is_an_alert(n_decided, n_alerts):
    control_set = {
        "judge": "strict",
        "n_decided": n_decided,
        "n_members": 40,
    }

    assert len(control_alerts([control_set], BAR)) == n_alerts


def test_a_control_set_of_a_judge_with_an_alert_is_no_second_one():
    control_set = {
        "judge": "strict",
        "n_decided": 0,
        "n_members": 40,
    }

    assert control_alerts([control_set], BAR, explained_judges={"strict"}) == []


@st.composite
def drawn_cell(draw: st.DrawFn) -> CoverageCell:
    n_done = draw(st.integers(0, 40))
    n_failed = draw(st.integers(0, 40 - n_done))
    judge = draw(st.sampled_from([None, *JUDGES]))
    return cell(
        draw(st.sampled_from(MODELS)),
        judge,
        n_done=n_done,
        provider_error=n_failed,
    )


@given(
    st.lists(drawn_cell(), max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_low_coverage_is_never_without_an_alert_and_nobody_has_two(
    cells, is_model_stopped, is_judge_stopped
):
    incomplete = low(*cells)
    stopped = []
    if is_model_stopped:
        stopped += stops("sample", gamma=SILENT)
    if is_judge_stopped:
        stopped += stops("judge", strict=SILENT)

    alerts = coverage_alerts(incomplete, stopped)

    assert bool(alerts) == bool(incomplete.cells)
    names = [alert.whom for alert in alerts]
    assert sorted(names) == sorted(set(names))
