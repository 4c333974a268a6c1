"""Rules of nights, tested without Prefect: which night it is, when it stops, and what a run's
record has.
"""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flows import deployments, nightly
from flows.cli.main import main
from flows.execution import Execution
from flows.nightly import as_night, run_night
from flows.run.arguments import Arguments
from flows.run.config import load_job
from flows.run.nights import stop_time
from flows.run.outcomes import ENDINGS
from flows.run.record import run_row
from tasks.config.job import Job
from tasks.config.settings import Nightly
from tasks.rules.errors import UsageError
from tests.kit import Patch, at, configure, job_on, prepared, rows_in
from warehouse import Warehouse

SECRET = "a-secret-in-the-address"


def job(tmp_path, **settings: Any) -> Job:
    return job_on("sample", tmp_path, **settings)


def utc(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 22, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize("moment", [utc(1), utc(9), utc(23)])
def test_a_late_night_stops_no_later(tmp_path, moment):
    night_job = as_night(job(tmp_path, nightly={"stop_at": "07:00"}), moment)

    assert night_job.night == "2026-11-22"
    assert night_job.stop_at == utc(7)


@pytest.mark.parametrize(
    ("moment", "next_stop"),
    [
        (utc(1), utc(7)),
        (utc(9), datetime(2026, 11, 23, 7, tzinfo=UTC)),
    ],
)
def test_a_night_that_is_repeated_stops_at_the_next_stop_time(
    tmp_path,
    moment,
    next_stop,
):
    configured = job(tmp_path, nightly={"stop_at": "07:00"})
    repeated = configured.model_copy(update={"night": "2026-11-20"})
    with_stop_time = repeated.model_copy(update={"stop_at": utc(10)})

    assert as_night(repeated, moment).stop_at == next_stop
    assert as_night(with_stop_time, moment).stop_at == utc(10)


def test_a_night_after_its_stop_is_skipped_with_an_alert(tmp_path, capsys):
    late = job(tmp_path, nightly={"cron": "0 1 * * *", "stop_at": "01:01"})

    skipped = run_night(as_night(late, utc(1)), is_verbose=False)

    assert skipped.exit_code == 3
    assert skipped.outcome == "skipped"
    [alert] = rows_in(tmp_path, "select kind, detail from alerts")
    assert alert["kind"] == "skipped"
    assert "its stop time 01:01 has passed" in alert["detail"]
    assert "did not take place: its stop time" in capsys.readouterr().err


def test_a_complete_night_that_is_started_again_after_its_stop_is_no_skipped_night(
    tmp_path,
    monkeypatch,
    capsys,
):
    monkeypatch.setattr(nightly, "has_work", lambda *_: False)
    schedule = {"cron": "0 1 * * *", "stop_at": "01:01"}
    complete = prepared(job(tmp_path, models=[], judges=[], nightly=schedule))

    repeated = run_night(as_night(complete, utc(1)), is_verbose=False)

    assert repeated.exit_code == 0
    assert repeated.alerts == []
    assert rows_in(tmp_path, "from alerts") == []
    assert "did not take place" not in capsys.readouterr().err


def test_a_night_that_began_and_is_started_again_after_its_stop_was_not_continued(
    tmp_path, capsys
):
    schedule = {"cron": "0 1 * * *", "stop_at": "01:01"}
    configured = prepared(job(tmp_path, nightly=schedule))
    night_job = configured.model_copy(update={"night": "2026-11-22"})
    record_run(run_row(night_job, [], at(0), at(1), "stopped_at_time"), tmp_path)

    skipped = run_night(as_night(configured, utc(1)), is_verbose=False)

    reason = "the night of 2026-11-22 was not continued: its stop time 01:01"
    assert skipped.exit_code == 3
    assert reason in capsys.readouterr().err


def record_run(run: dict[str, Any], folder: Path):
    """Store a row of `runs`."""
    Warehouse(folder).write("runs", [run])
    Warehouse(folder).publish()


@dataclass
class Scheduler:
    """Calls the deployment of nights as Prefect does, and collects the nights that it ran."""

    folder: Path
    monkeypatch: Patch
    nights: list[Job] = field(default_factory=list)

    def start(self, scheduled_at: str, *tags: str) -> Any:
        """Start the night that is scheduled for a time, and return the state in which it ended."""
        flow_run = SimpleNamespace(
            scheduled_start_time=datetime.fromisoformat(scheduled_at),
            tags=tags,
        )
        self.monkeypatch.setattr(deployments, "flow_run", flow_run)
        self.monkeypatch.setattr(deployments, "run_night", self._run)
        configure(
            self.folder,
            dataset={"source": "sample"},
            nightly={"timezone": "Europe/London", "stop_at": "07:00"},
        )
        return deployments.nightly.fn(
            config=str(self.folder / "prbench.yaml"),
            warehouse=str(self.folder / "data"),
        )

    def _run(self, job: Job, **_: Any) -> Execution:
        self.nights.append(as_night(job))
        return Execution(job)


@pytest.fixture
def scheduler(tmp_path, monkeypatch) -> Scheduler:
    return Scheduler(tmp_path, monkeypatch)


def test_a_scheduled_night_has_the_label_and_the_stop_time_of_its_time_even_if_it_starts_early(
    scheduler,
):
    state = scheduler.start("2096-03-25T00:00:00+00:00", "auto-scheduled")

    [night_job] = scheduler.nights
    assert night_job.night == "2096-03-25"
    assert night_job.stop_at == datetime(2096, 3, 25, 6, tzinfo=UTC)
    assert state.is_completed()


def test_a_night_that_somebody_starts_stops_at_the_next_stop_time(scheduler):
    begin = datetime.now(UTC)

    scheduler.start("2096-03-25T09:00:00+00:00")

    [night_job] = scheduler.nights
    assert night_job.night == "2096-03-25"
    assert night_job.stop_at is not None
    assert begin < night_job.stop_at <= begin + timedelta(days=1, hours=1)


def test_a_scheduled_night_is_missed_when_the_next_one_has_begun(scheduler, capsys):
    state = scheduler.start("2026-03-29T00:00:00+00:00", "auto-scheduled")

    assert scheduler.nights == []
    assert state.name == "Missed"
    assert not state.is_completed()
    assert ENDINGS["missed"].exit_code == 3
    line = (
        "the night of 2026-03-29 did not take place: it was missed, and the night of"
    )
    assert line in capsys.readouterr().err


@pytest.fixture
def executed_nights(monkeypatch) -> list[str | None]:
    """The labels of the nights whose flow was called; the flow does nothing here."""
    labels = []

    def execute(job, *_, **__):
        labels.append(job.night)
        return Execution(job)

    monkeypatch.setattr(nightly, "execute_flow", execute)
    return labels


@pytest.fixture
def night_in_progress(tmp_path) -> Iterator[Job]:
    """The job of a night in progress, in another run of this process."""
    night_job = prepared(job(tmp_path)).model_copy(
        update={"night": "2026-11-22", "run_id": "r"}
    )
    with (
        Warehouse(tmp_path).only_one("night-prbench", wait=False),
        Warehouse(tmp_path).living("r"),
    ):
        record_run(run_row(night_job, [], at(0), None, "running"), tmp_path)
        yield night_job


def test_a_night_beside_another_is_skipped_with_an_alert(
    night_in_progress, executed_nights
):
    next_night = night_in_progress.model_copy(update={"night": "2026-11-23"})

    skipped = run_night(next_night, is_verbose=False)

    assert executed_nights == []
    assert skipped.outcome == "skipped"
    assert skipped.exit_code == 3
    [alert] = skipped.alerts
    assert f"process {os.getpid()} is at work" in alert["line"]


def test_a_night_that_is_started_twice_is_skipped_without_an_alert(
    night_in_progress,
    executed_nights,
    capsys,
):
    skipped = run_night(night_in_progress, is_verbose=False)

    assert executed_nights == []
    assert skipped.outcome == "skipped"
    assert skipped.exit_code == 3
    assert skipped.alerts == []
    line = "skipped: the night of 2026-11-22 is already in progress"
    assert line in capsys.readouterr().err


def test_a_queued_night_waits_for_the_end_of_another(tmp_path, executed_nights):
    prepared(job(tmp_path))
    queued = job(tmp_path, nightly={"overlap": "queue"}).model_copy(
        update={"night": "2026-11-24"}
    )
    waiting = threading.Thread(
        target=run_night,
        args=(queued,),
        kwargs={"is_verbose": False},
    )

    with Warehouse(tmp_path).only_one("night-prbench", wait=False):
        waiting.start()
        waiting.join(0.5)  # long enough to reach the lock
        assert waiting.is_alive()
        assert executed_nights == []
    waiting.join()

    assert executed_nights == ["2026-11-24"]


def test_a_killed_night_is_an_alert_of_the_next_one(tmp_path, executed_nights):
    killed = prepared(job(tmp_path)).model_copy(
        update={"night": "2026-11-22", "run_id": "r1"}
    )
    record_run(run_row(killed, [], at(0), None, "running"), tmp_path)
    tonight = killed.model_copy(update={"night": "2026-11-23", "run_id": "r2"})

    [alert] = run_night(tonight, is_verbose=False).alerts

    line = "the night of 2026-11-22 was killed (run r1, begun 00:00 UTC)"
    assert executed_nights == ["2026-11-23"]
    assert alert["line"] == line


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
def test_a_secret_beside_a_reference_is_in_no_record_or_prefect(tmp_path, receiver):
    night_job = job(tmp_path, alerts={"to": [receiver]})

    run = run_row(
        night_job,
        [],
        at(0),
        None,
        "running",
    )

    assert SECRET not in run["config"]
    assert SECRET not in night_job.model_dump_json()
    assert SECRET in str(night_job.settings.alerts.to)


@pytest.mark.parametrize(
    "label", ["base", "not a date", "2026-13-40", "2026-11-22T06", "20261122"]
)
def test_a_night_is_named_by_its_date(label):
    with pytest.raises(UsageError, match=f"--night {label}: is not a date"):
        load_job(Arguments(night=label))


def test_a_night_that_is_refused_sends_its_alert_and_stores_nothing(
    tmp_path, monkeypatch
):
    sent_alerts = []

    def deliver(_, alerts, *__, **___):
        sent_alerts.extend(alerts)
        return []

    monkeypatch.setattr(nightly, "deliver", deliver)
    monkeypatch.chdir(tmp_path)
    document = {"dataset": {"source": "gone.jsonl"}, "models": [{"name": "openai/m"}]}
    Path("prbench.yaml").write_text(json.dumps(document))

    exit_code = main(["nightly", "--night", "2026-11-22"])

    assert exit_code == 2
    [alert] = sent_alerts
    assert alert.line.startswith(
        "the night of 2026-11-22 failed: dataset.source: gone.jsonl is not"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["prbench.yaml"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("06:30", "2026-11-22 06:30+01:00"),
        ("6:30", "2026-11-22 06:30+01:00"),
        ("0:30", "2026-11-23 00:30+01:00"),
        ("2026-11-23", "2026-11-23 00:00+01:00"),
        ("2026-11-23T06:30", "2026-11-23 06:30+01:00"),
        ("2026-11-23 06:30", "2026-11-23 06:30+01:00"),
        ("2026-11-23T06:30:15.5", "2026-11-23 06:30:15.500+01:00"),
        ("2026-11-23 06:30:15,250+02:00", "2026-11-23 06:30:15.250+02:00"),
        ("2026-11-23T06:30Z", "2026-11-23 06:30+00:00"),
        ("2026-W48-1T06:30", "2026-11-23 06:30+01:00"),
    ],
)
def test_a_stop_time_is_a_moment_or_the_next_time_of_day(text, moment):
    present = datetime(2026, 11, 22, 1, 0, tzinfo=ZoneInfo("Europe/Berlin"))

    assert stop_time(text, present) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a time"),
        ("soon", "is not a time"),
        ("06:30:00", "is not a time"),
        ("6.30", "is not a time"),
        ("2026", "is not a time"),
        ("2026-11-21T06:30", "has passed"),
    ],
)
def test_what_is_no_stop_time_is_refused(text, reason):
    with pytest.raises(UsageError, match=f"--stop-at.*{reason}"):
        stop_time(text, datetime(2026, 11, 22, 1, 0, tzinfo=UTC))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"cron": ""}, "cron|five fields"),
        ({"cron": "0 1 * *"}, "cron|five fields"),
        ({"cron": "61 1 * * *"}, "cron|five fields"),
        ({"cron": "0 0 1 * * *"}, "cron|five fields"),
        ({"cron": "0 1 31 2 *"}, "cron|five fields"),
        ({"timezone": "Mars/Olympus"}, "Europe/Berlin"),
    ],
)
def test_a_schedule_that_names_no_time_is_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        Nightly(**setting)
