"""What receivers get to read."""

import html
import json

from hypothesis import given
from hypothesis import strategies as st

from tasks.alerts.findings import Alert, failure
from tasks.alerts.message import Message, Night, escaped
from tests.kit import job_on
from tests.tasks.alerts.conftest import DRIFT, DROP, NIGHT


def test_the_title_says_which_night_and_how_many_alerts_of_which_kinds() -> None:
    message = Message.about(NIGHT, [DROP, DRIFT, DROP])

    assert "prbench, night 2026-11-22: judge drift (1), score drop (2)" == message.title


def test_a_run_that_is_no_night_is_named_by_its_id(tmp_path: object) -> None:
    night = Night.of(job_on("sample", tmp_path, run_id="run-7"))  # type: ignore[arg-type]

    assert "prbench, run run-7: failure (1)" == Message.about(night, [failure("out of disk")]).title


def test_a_report_that_is_served_is_named(tmp_path: object) -> None:
    job = job_on("sample", tmp_path, run_id="run-7", report={"url": "https://evals.example.org/"})  # type: ignore[arg-type]

    body = Message.about(Night.of(job), [failure("out of disk")]).body

    assert body.endswith(", report https://evals.example.org/prbench/index.html; all are in the table `alerts`")


def test_what_ended_the_night_is_told_before_what_it_found() -> None:
    assert [
        "failure: out of disk", f"judge drift: {DRIFT.line}", f"score drop: {DROP.line}",
        "run a-run, warehouse warehouse/data; all are in the table `alerts`",
    ] == Message.about(NIGHT, [DROP, DRIFT, failure("out of disk")]).body.split("\n\n")  # fmt: skip


def test_what_a_model_is_called_makes_no_link_and_no_mention_in_a_chat() -> None:
    hostile = "<!channel> <https://evil.example|click> a&b @here"

    shown = Message.about(NIGHT, [Alert("score_drop", hostile, f"{hostile} fell")]).as_chat

    assert "<" not in shown
    assert ">" not in shown
    assert "&lt;!channel&gt; &lt;https://evil.example|click&gt; a&amp;b @\u200bhere fell" in shown


@given(text=st.text(st.sampled_from("ab &<>@here\u20ac"), max_size=60))
def test_escaped_text_reads_as_it_was(text: str) -> None:
    assert text == html.unescape(escaped(text)).replace("\u200b", "")


def test_a_night_full_of_alerts_stays_within_what_servers_take_and_says_how_many_more_there_are() -> None:
    message = Message.about(NIGHT, [Alert("score_drop", f"model-{i}", "&" * 900) for i in range(200)])

    for shown, n_shown in ((message.body, 16), (message.as_chat, 3)):
        assert 16_000 >= len(shown)
        assert f"and {200 - n_shown} more" == shown.split("\n\n")[-2]
    assert 200 == len(json.loads(json.dumps(message.as_json))["alerts"])
