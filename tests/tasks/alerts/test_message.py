"""The message about a night: its title, its six lines, and who gets it again."""

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.alerts.findings import (
    KINDS,
    Alert,
    alert_id,
    drift_alerts,
    drop_alerts,
    failure_alert,
    stopping_drop_alerts,
)
from tasks.alerts.message import Results, escaped, night_message
from tasks.alerts.sending import Delivery, deliver, history_of, store_alerts
from tasks.config.job import Job
from tests.kit import row, written
from tests.tasks.alerts.conftest import DRIFTED, FELL, NIGHT, alerts_to, night_job
from tests.tasks.alerts.servers import Hook
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("without_scores")
SCORES = [
    {
        "split": "finance_hard",
        "judge": "strict",
        "model": model,
        "mean_score": score,
        "coverage": coverage,
        "is_below_bar": coverage < 0.99,
    }
    for model, score, coverage in (("alpha", 0.553, 1.0), ("beta", 0.41, 0.442))
]
RESULTS = Results(SCORES, 1.234, 480)
RESULTS_LINE = (
    "Scores by strict: finance_hard: alpha .553, beta .410 (44.2% covered)."
    " Cost: 1.23 USD for 480 calls."
)


def silent(whom: str, share: float = 0.0) -> Alert:
    """An alert about an endpoint that gave no reply, such as `model gamma`."""
    kind, label = whom.split()
    facts = {
        "of": kind,
        "happened": "gave no reply",
        "share": share,
    }
    line = f"{whom} gave no reply: 0 of 40 responses; no successful reply for 60 s"
    return Alert(
        "coverage",
        label,
        line,
        facts,
        whom=whom,
        happened="gave no reply",
    )


GAMMA = silent("model gamma")


def fell(**changes: Any) -> Alert:
    return drop_alerts([FELL | changes], least_drop=0.01, alpha=0.05)[0]


@pytest.mark.parametrize(
    ("alerts", "title"),
    [
        ([fell()], "beta fell on finance_hard: .53 to .41"),
        (
            [silent("judge strict"), GAMMA],
            "2 models or judges gave no reply: judge strict, model gamma",
        ),
        (
            [fell(), GAMMA],
            "model gamma gave no reply; beta fell on finance_hard: .53 to .41",
        ),
        (
            [
                fell(split="a"),
                fell(split="b"),
                fell(split="c"),
            ],
            "beta fell on a: .53 to .41; beta fell on b: .53 to .41; and 1 more",
        ),
    ],
)
def test_the_title_says_what_happened_to_whom(alerts, title):
    message = night_message(NIGHT, alerts, RESULTS)

    assert message.title == f"{title} (prbench, 2026-11-22)"


@pytest.mark.parametrize(
    ("first_mean", "second_mean", "text"),
    [
        (0.53, 0.41, ".53 to .41"),
        (0.512, 0.469, ".512 to .469"),
        (1.0, 0.9, "1.00 to .90"),
        (0.02, -0.1, ".02 to -.10"),
        (0.5, 0.0001, ".50 to .00"),
        (0.01, -0.0001, ".010 to .000"),
    ],
)
def test_means_have_as_many_decimals_as_their_difference_needs(
    first_mean,
    second_mean,
    text,
):
    alert = fell(
        first_mean=first_mean,
        second_mean=second_mean,
        difference=second_mean - first_mean,
    )

    assert alert.headline == f"beta fell on finance_hard: {text}"


def test_a_message_has_events_then_scores_and_cost_then_what_to_do(tmp_path):
    job = night_job(tmp_path, report={"url": "https://evals.example.org/"})
    job = job.model_copy(update={"location_options": ("--config /srv/prbench.yaml",)})

    message = night_message(job, [GAMMA], RESULTS)

    next_steps = (
        "Next: `prbench status --night 2026-11-22 --config /srv/prbench.yaml` shows the errors;"
        " `prbench nightly` with the same options tries again."
    )
    assert message.lines == (
        "model gamma gave no reply: 0 of 40 responses; no successful reply for 60 s",
        RESULTS_LINE,
        next_steps,
        "Report: https://evals.example.org/prbench/index.html",
    )


def test_the_same_drop_under_several_judges_is_one_line():
    message = night_message(
        NIGHT,
        [fell(), fell(judge="other", judge_trial=2, second_mean=0.42)],
        RESULTS,
    )

    title = "beta fell on finance_hard: .53 to .41 (prbench, 2026-11-22)"
    assert message.title == title
    assert message.lines[0].endswith("; judged by others: other #2 .53 to .42")
    assert len(message.lines) == 3


def test_drops_under_a_judge_that_drifted_are_one_line_after_it():
    falls = [
        FELL | {"model": model, "judge": "a-judge"}
        for model in ("alpha", "beta", "gamma")
    ]
    alerts = drop_alerts(
        falls,
        least_drop=0.01,
        alpha=0.05,
        drifted_judges={"a-judge": "a-judge"},
    )

    message = night_message(NIGHT, [*alerts, *drift_alerts([DRIFTED])], RESULTS)

    drift, falls_line = message.lines[:2]
    assert message.title == "judge a-judge drifted (prbench, 2026-11-22)"
    repetition = "repeated its first decision on 91.0% of 200 control verdicts"
    assert f"a-judge {repetition}" in drift
    assert falls_line == (
        "Perhaps caused by that: 3 models fell on finance_hard: .53 to .41:"
        " alpha, beta, gamma."
    )


def test_a_drop_is_no_consequence_where_the_drift_is_known_already():
    alerts = drop_alerts(
        [FELL],
        least_drop=0.01,
        alpha=0.05,
        drifted_judges={"strict": "strict"},
    )

    message = night_message(NIGHT, alerts, RESULTS)

    assert "strict drifted the same night" in message.lines[0]


def test_a_killed_night_is_continued_by_its_own_label():
    alert = failure_alert(
        "the night of 2026-11-20 was killed", {"night": "2026-11-20"}
    )

    message = night_message(NIGHT, [alert])

    advice = "Next: `prbench nightly --night 2026-11-20` continues it"
    assert advice in message.lines[-1]


def test_a_clean_night_is_three_lines(tmp_path):
    job = night_job(tmp_path)
    job.report_index.parent.mkdir(parents=True)
    job.report_index.touch()

    message = night_message(job, [], RESULTS)

    assert message.title == "complete, no alerts (prbench, 2026-11-22)"
    assert message.lines == (
        RESULTS_LINE,
        "Next: `prbench leaderboard` shows more.",
        f"Report: {job.report_index}",
    )


def test_a_change_of_judge_is_a_line_of_its_own_before_the_scores():
    change = "Judge changed: old → new."

    message = night_message(NIGHT, [], replace(RESULTS, judge_change=change))

    assert message.lines[:2] == (change, RESULTS_LINE)


def test_an_unknown_cost_and_a_night_without_scores_are_shown_as_such():
    message = night_message(
        NIGHT,
        [],
        Results((), None, 1),
    )

    assert message.lines[0] == "Scores: none. Cost: unknown for 1 call."


names = st.text(
    st.sampled_from("ab1 &<>@here\n\u202e'`"),
    min_size=1,
    max_size=9,
)


@st.composite
def any_alert(draw: st.DrawFn) -> Alert:
    whom = draw(names)
    return Alert(
        draw(st.sampled_from(KINDS)),
        subject=whom,
        line=draw(names) * 99,
        facts={"judge": draw(names), "judge_trial": 1},
        whom=whom,
        happened=draw(names),
        cause=draw(st.sampled_from(["", "judge a"])),
    )


@given(st.lists(any_alert(), max_size=40), st.sampled_from([None, RESULTS]))
def test_a_message_has_at_most_six_lines_whatever_happened(alerts, results):
    message = night_message(NIGHT, alerts, results)

    assert len(message.lines) <= 6
    assert len(message.lines) == len(message.body.splitlines())
    assert len(message.title.splitlines()) == 1
    assert len(message.as_chat) <= 16_000
    assert len(alerts) == len(message.as_json["alerts"])
    assert message.title == html.unescape(escaped(message.title)).replace(
        "\u200b", ""
    )


# What is sent again


def night_of(folder: Path, day: int) -> Job:
    return night_job(folder, f"2026-11-{day:02}", f"run-{day}")


def store_run(job: Job):
    """Publish the row of a night's run."""
    config = '{"benchmark": "prbench"}'
    run = row(
        "runs",
        run_id=job.run_id,
        night=job.night,
        config=config,
    )
    written(job.warehouse, {"runs": [run]}).publish()


def hold_nights(
    folder: Path,
    hook: Hook,
    *nights: list[Alert],
    when: str = "changes",
) -> list[str]:
    """Send the alerts of nights one after the other, and return the titles of the messages."""
    settings = alerts_to({"webhook": hook.address}, when=when)
    for day, alerts in enumerate(nights, start=1):
        job = night_of(folder, day)
        store_run(job)
        store_alerts(job, alerts)
        history = history_of(job, alerts)
        store_alerts(
            job,
            [],
            deliver(settings, alerts, job, RESULTS, history=history),
        )
    return [call.json["title"].partition(" (")[0] for call in hook.seen]


def test_a_standing_alert_is_sent_once(tmp_path, hook):
    both = [GAMMA, silent("judge strict")]

    titles = hold_nights(tmp_path, hook, [GAMMA], [GAMMA], both, both)

    assert titles == ["model gamma gave no reply", "judge strict gave no reply"]


def test_an_alert_that_was_gone_for_a_night_is_sent_again(tmp_path, hook):
    assert len(hold_nights(tmp_path, hook, [GAMMA], [], [GAMMA])) == 2


def test_an_alert_is_sent_again_when_it_changes_also_little_by_little(tmp_path, hook):
    nights = [[silent("model gamma", share)] for share in (0.8, 0.77, 0.74, 0.2)]

    hold_nights(tmp_path, hook, *nights)

    shares = [call.json["alerts"][0]["facts"]["share"] for call in hook.seen]
    assert shares == [0.8, 0.74, 0.2]


def test_a_drop_that_stopping_finds_every_night_is_sent_once(tmp_path, hook):
    look = row(
        "stopping_looks",
        model="beta",
        compared_vintage="earlier nights",
        mean_difference=-0.12,
        least_difference=0.05,
        sequence_low=-0.2,
        sequence_high=-0.05,
        decision="dropped",
    )
    alerts = stopping_drop_alerts([look])

    assert len(hold_nights(tmp_path, hook, alerts, alerts)) == 1


def test_another_cause_is_a_change(tmp_path, hook):
    facts = {**GAMMA.facts, "happened": "refused all calls"}
    refusal = replace(GAMMA, happened="refused all calls", facts=facts)

    assert len(hold_nights(tmp_path, hook, [GAMMA], [refusal])) == 2


def test_an_alert_that_was_not_delivered_is_sent_the_next_night(tmp_path):
    job = night_of(tmp_path, 1)
    store_run(job)
    ids = (alert_id(job, GAMMA),)
    failed = Delivery("webhook 1", "failed", 4, "no connection", 1, ids)
    store_alerts(job, [GAMMA], [failed])
    Warehouse(tmp_path).publish()

    tonight = night_of(tmp_path, 2)
    history = history_of(tonight, [GAMMA])

    assert ("webhook 1", alert_id(tonight, GAMMA)) not in history.sent


def test_a_failed_night_is_news_every_night(tmp_path, hook):
    full = failure_alert("out of disk")

    assert len(hold_nights(tmp_path, hook, [full], [full])) == 2


def test_with_always_there_is_a_message_every_night_and_only_one(tmp_path, hook):
    titles = hold_nights(tmp_path, hook, [], [GAMMA], [GAMMA], when="always")

    assert titles == [
        "complete, no alerts",
        "model gamma gave no reply",
        "nothing new; as before: model gamma gave no reply",
    ]


@pytest.mark.parametrize(("alerts", "n_deliveries"), [([GAMMA], 0), ([], 1)])
def test_with_always_a_night_that_is_run_again_sends_a_message_only_if_it_says_something_else(
    tmp_path,
    hook,
    alerts,
    n_deliveries,
):
    hold_nights(tmp_path, hook, [], [GAMMA], when="always")
    Warehouse(tmp_path).publish()
    job = night_of(tmp_path, 2)
    settings = alerts_to({"webhook": hook.address}, when="always")
    history = history_of(job, alerts)

    deliveries = deliver(settings, alerts, job, RESULTS, history=history)

    assert len(deliveries) == n_deliveries


def test_with_always_a_night_that_did_not_end_sends_only_its_alerts(hook):
    settings = alerts_to({"webhook": hook.address}, when="always")

    assert deliver(settings, [], NIGHT) == []
