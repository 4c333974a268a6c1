"""Rules of nights, tested without Prefect: which night it is, when it stops, and what a run's
record has.
"""

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows import deployments, nightly
from flows.cli.main import main
from flows.execution import Execution
from flows.nightly import as_night, run_night
from flows.run.arguments import Arguments
from flows.run.config import load_job
from flows.run.nights import night_of, stop_time
from flows.run.outcomes import ENDINGS
from flows.run.record import run_row
from tasks.config.job import Job
from tasks.config.settings import Nightly
from tasks.rules.errors import UsageError
from tests.kit import Patch, Printed, at, configure, job_on, prepared, rows_in
from warehouse import Warehouse

SECRET = "a-secret-in-the-address"


def job(tmp_path: Path, **settings: Any) -> Job:
    return job_on("sample", tmp_path, **settings)


def utc(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 22, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize("now", [utc(1), utc(5, 30), utc(9), utc(23)])
def test_a_late_night_stops_no_later_and_one_that_is_repeated_at_the_next_stop(
    tmp_path: Path, now: datetime
) -> None:
    tonight = job(tmp_path, nightly={"stop_at": "07:00"})
    of_night = as_night(tonight, now)
    assert of_night.night == "2026-11-22"
    assert utc(7) == of_night.stop_at
    again = tonight.model_copy(update={"night": "2026-11-20"})
    assert utc(7) + timedelta(days=now > utc(7)) == as_night(again, now).stop_at
    assert utc(10) == as_night(again.model_copy(update={"stop_at": utc(10)}), now).stop_at


def test_a_night_after_its_stop_is_skipped_with_an_alert(tmp_path: Path, capsys: Printed) -> None:
    late = job(tmp_path, nightly={"cron": "0 1 * * *", "stop_at": "01:01"})
    skipped = run_night(late, is_verbose=False, scheduled_at=utc(1))
    assert skipped.exit_code == 3
    assert skipped.outcome == "skipped"
    (alert,) = rows_in(tmp_path, "select kind, detail from alerts")
    assert alert["kind"] == "skipped"
    assert "its stop time 01:01 has passed" in alert["detail"]
    assert "did not take place: its stop time" in capsys.readouterr().err


def test_a_complete_night_that_is_started_again_after_its_stop_is_no_skipped_night(
    tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    monkeypatch.setattr(nightly, "has_work", lambda *_: False)
    complete = prepared(
        job(
            tmp_path,
            models=[],
            judges=[],
            nightly={"cron": "0 1 * * *", "stop_at": "01:01"},
        )
    )

    again = run_night(complete, is_verbose=False, scheduled_at=utc(1))

    assert again.exit_code == 0
    assert again.alerts == []
    assert rows_in(tmp_path, "from alerts") == []
    assert "did not take place" not in capsys.readouterr().err


def test_a_night_that_began_and_is_started_again_after_its_stop_was_not_continued(
    tmp_path: Path, capsys: Printed
) -> None:
    begun = prepared(job(tmp_path, nightly={"cron": "0 1 * * *", "stop_at": "01:01"}))
    night = begun.model_copy(update={"night": "2026-11-22"})
    Warehouse(tmp_path).write("runs", [run_row(night, [], at(0), at(1), "stopped_at_time")])
    Warehouse(tmp_path).publish()

    skipped = run_night(begun, is_verbose=False, scheduled_at=utc(1))

    assert skipped.exit_code == 3
    assert (
        "the night of 2026-11-22 was not continued: its stop time 01:01" in capsys.readouterr().err
    )


@pytest.fixture
def scheduled(tmp_path: Path, monkeypatch: Patch) -> Callable[..., tuple[list[Job], Any]]:
    """Calls the deployment of nights as Prefect does for a time, and returns the nights that it
    ran.
    """
    ran: list[Job] = []

    def run(job: Job, **_: Any) -> Execution:
        ran.append(as_night(job))
        return Execution(job)

    def start(time: str, *tags: str) -> tuple[list[Job], Any]:
        stated = SimpleNamespace(scheduled_start_time=datetime.fromisoformat(time), tags=tags)
        monkeypatch.setattr(deployments, "flow_run", stated)
        monkeypatch.setattr(deployments, "run_night", run)
        nights = {"timezone": "Europe/London", "stop_at": "07:00"}
        configure(tmp_path, dataset={"source": "sample"}, nightly=nights)
        state = deployments.nightly.fn(
            config=str(tmp_path / "prbench.yaml"), warehouse=str(tmp_path / "data")
        )
        return ran, state

    return start


def test_a_scheduled_night_has_the_label_and_the_stop_time_of_its_time_even_if_it_starts_early(
    scheduled: Callable[..., tuple[list[Job], Any]],
) -> None:
    [night], state = scheduled("2096-03-25T00:00:00+00:00", "auto-scheduled")

    assert night.night == "2096-03-25"
    assert night.stop_at == datetime(2096, 3, 25, 6, tzinfo=UTC)
    assert state.is_completed()


def test_a_night_that_somebody_starts_stops_at_the_next_stop_time(
    scheduled: Callable[..., tuple[list[Job], Any]],
) -> None:
    [night], _ = scheduled("2096-03-25T09:00:00+00:00")

    assert night.night == "2096-03-25"
    assert night.stop_at is not None
    assert timedelta(0) < night.stop_at - datetime.now(UTC) <= timedelta(days=1, hours=1)


def test_a_scheduled_night_is_missed_when_the_next_one_has_begun(
    scheduled: Callable[..., tuple[list[Job], Any]], capsys: Printed
) -> None:
    ran, state = scheduled("2026-03-29T00:00:00+00:00", "auto-scheduled")

    assert ran == []
    assert state.name == "Missed"
    assert not state.is_completed()
    assert ENDINGS["missed"].exit_code == 3
    assert (
        "the night of 2026-03-29 did not take place: it was missed, and the night of"
        in capsys.readouterr().err
    )


@pytest.fixture
def executed(monkeypatch: Patch) -> list[str | None]:
    """The labels of the nights whose flow was called; the flow does nothing here."""
    labels: list[str | None] = []

    def execute(job: Job, *_: Any, **__: Any) -> Execution:
        labels.append(job.night)
        return Execution(job)

    monkeypatch.setattr(nightly, "execute_flow", execute)
    return labels


def test_a_night_beside_another_is_skipped_or_waits(
    tmp_path: Path, executed: list[str | None], capsys: Printed
) -> None:
    ready = prepared(job(tmp_path))
    first, second = (
        ready.model_copy(update={"night": f"2026-11-2{day}", "run_id": "r"}) for day in (2, 3)
    )
    queued = job(tmp_path, nightly={"overlap": "queue"}).model_copy(update={"night": "2026-11-24"})
    waiting = threading.Thread(
        target=run_night,
        args=(queued,),
        kwargs={"is_verbose": False},
    )
    with Warehouse(tmp_path).only_one("night-prbench", wait=False), Warehouse(tmp_path).living("r"):
        Warehouse(tmp_path).write("runs", [run_row(first, [], at(0), None, "running")])
        Warehouse(tmp_path).publish()
        skipped, again = (run_night(each, is_verbose=False) for each in (second, first))
        waiting.start()
        assert executed == []
    waiting.join(60)

    assert executed == ["2026-11-24"]
    assert [(each.outcome, each.exit_code) for each in (skipped, again)] == [("skipped", 3)] * 2
    # Starting the same night again causes no alert.
    (alert,) = skipped.alerts
    assert f"process {os.getpid()} is at work" in alert["line"]
    assert again.alerts == []
    assert "skipped: the night of 2026-11-22 is already in progress" in capsys.readouterr().err


def test_a_killed_night_is_an_alert_of_the_next_one(
    tmp_path: Path, executed: list[str | None]
) -> None:
    ready = prepared(job(tmp_path))
    killed, tonight = (ready.model_copy(update={"night": f"2026-11-2{day}"}) for day in (2, 3))
    Warehouse(tmp_path).write(
        "runs", [run_row(killed, [], at(0), None, "running") | {"run_id": "r1"}]
    )
    (alert,) = run_night(tonight, is_verbose=False).alerts

    assert executed == ["2026-11-23"]
    assert alert["line"] == "the night of 2026-11-22 was killed (run r1, begun 00:00 UTC)"


@pytest.mark.parametrize(
    "receiver",
    [
        {"slack": f"https://hooks.slack.com/services/{SECRET}/${{SLACK_PART}}"},
        {"slack": f"{SECRET}${{SLACK_URL}}"},
        {"webhook": f"https://user:{SECRET}/x@hooks.example.org/x"},
        {"slack": f"${{SLACK_HOST}}/{SECRET}"},
        {"webhook": f"https://hooks.slack.com/{SECRET}?channel=${{CHANNEL}}"},
        {"webhook": f"https://${{HOST}}/{SECRET}"},
        {"webhook": f"{SECRET}"},
    ],
)
def test_a_secret_beside_a_reference_is_in_no_record_or_prefect(
    tmp_path: Path, receiver: dict[str, str]
) -> None:
    of_night = job(tmp_path, alerts={"to": [receiver]})
    assert SECRET not in run_row(of_night, [], at(0), None, "running")["config"]
    assert SECRET not in of_night.model_dump_json()
    assert SECRET in str(of_night.settings.alerts.to)


@pytest.mark.parametrize("label", ["base", "not a date", "2026-13-40", "2026-11-22T06", "20261122"])
def test_a_night_is_named_by_its_date(label: str) -> None:
    with pytest.raises(UsageError, match=f"--night {label}: is not a date"):
        load_job(Arguments(night=label))


def test_a_night_that_is_refused_sends_its_alert_and_stores_nothing(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(
        nightly, "deliver", lambda _, alerts, *__, **___: sent.extend(a.line for a in alerts) or []
    )
    monkeypatch.chdir(tmp_path)
    document = {"dataset": {"source": "gone.jsonl"}, "models": [{"name": "openai/m"}]}
    Path("prbench.yaml").write_text(json.dumps(document), encoding="utf-8")

    assert main(["nightly", "--night", "2026-11-22"]) == 2
    assert len(sent) == 1
    assert sent[0].startswith("the night of 2026-11-22 failed: dataset.source: gone.jsonl is not")
    assert [path.name for path in tmp_path.iterdir()] == ["prbench.yaml"]


BERLIN = ZoneInfo("Europe/Berlin")
LATE = Nightly(cron="0 23 * * *", timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("nightly", "now", "night"),
    [
        (LATE, "2026-11-21T22:00:00Z", "2026-11-21"),  # 23:00 in Berlin
        (LATE, "2026-11-22T03:00:00Z", "2026-11-21"),  # begun again after midnight, the same night
        (Nightly(cron="30 2 * * 1-5"), "2026-11-22T12:00:00Z", "2026-11-20"),  # a Sunday: Friday's
        (Nightly(cron="0 */6 * * *"), "2026-11-22T13:00:00Z", "2026-11-22T12:00"),
        (Nightly(cron="* * * * *"), "2026-11-22T13:00:30Z", "2026-11-22T13:00"),
        (
            Nightly(cron="30 2 * * *", timezone="Europe/Berlin"),
            "2026-03-29T12:00:00Z",
            "2026-03-29",
        ),  # no 02:30
    ],
)
def test_a_night_is_the_day_at_which_the_schedule_last_fired(
    nightly: Nightly, now: str, night: str
) -> None:
    assert night == night_of(nightly, datetime.fromisoformat(now))


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),
    st.integers(0, 23),
    st.integers(0, 59),
)
def test_a_night_lasts_until_the_next_one_begins(moment: datetime, hour: int, minute: int) -> None:
    begun = moment.replace(
        hour=hour,
        minute=minute,
        second=0,
        microsecond=0,
    )
    night = begun - timedelta(days=begun > moment)
    assert f"{night:%Y-%m-%d}" == night_of(
        Nightly(cron=f"{minute} {hour} * * *"), moment.replace(tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("06:30", datetime(2026, 11, 22, 6, 30, tzinfo=BERLIN)),
        ("0:30", datetime(2026, 11, 23, 0, 30, tzinfo=BERLIN)),
        ("2026-11-23T06:30", datetime(2026, 11, 23, 6, 30, tzinfo=BERLIN)),
        ("2026-11-23T06:30+00:00", datetime(2026, 11, 23, 6, 30, tzinfo=UTC)),
    ],
)
def test_a_time_of_day_is_the_next_one(text: str, stops: datetime) -> None:
    assert stops == stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=BERLIN))


@pytest.mark.parametrize(
    "text",
    [
        "06:30",
        "6:30",
        "2026-11-23",
        "2026-11-23T06:30",
        "2026-11-23 06:30",
        "2026-11-23T06:30:15",
        "20261123T0630",
        "2026-11-23T06:30:15.5",
        "2026-11-23 06:30:15,250+01:00",
        "2026-11-23T06:30Z",
        "2026-W48-1T06:30",
        "2026W481",
    ],
)
def test_a_stop_time_may_be_written_in_many_ways(text: str) -> None:
    assert stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=UTC)).year == 2026


@pytest.mark.parametrize("text", ["", "soon", "7 pm", "06:30:00", "6.30", "tomorrow 06:30", "2026"])
def test_what_is_no_stop_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--stop-at"):
        stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        *(
            ({"cron": cron}, "cron|five fields")
            for cron in ("", "every night", "0 1 * *", "61 1 * * *", "0 0 1 * * *", "0 1 31 2 *")
        ),
        ({"timezone": "Mars/Olympus"}, "Europe/Berlin"),
    ],
)
def test_a_schedule_that_names_no_time_is_refused(setting: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Nightly(**setting)
