"""What Prefect and the libraries below it are told before they are imported; what the user has set stays."""

import os

from tasks.console.terminal import guard_log_records
from tasks.llm.litellm_setup import collect_seldom
from tasks.llm.redaction import guard_logs

_DEFAULTS = {
    # Nothing is reported to anyone.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    # Prefect starts no server by itself: whoever reaches that one can have it run commands. `own_server.py` starts one.
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    # A server takes 11 to 20 s to start, more on a busy machine; the default limit is 20 s.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    # At its end a run's own server logs the events that it could not write any more; they say nothing to anyone.
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    # Failures are told by the command itself, in one line; with -v in full.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # Colours are commands to a terminal, which standard error shows and does not pass on.
    "PREFECT_LOGGING_COLORS": "false",
    # What the UI shows of a batch is its state; a log line each would bury those of the stages.
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    # Fewer and larger writes: thousands of task runs otherwise stall its SQLite database.
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
}


def follow_no_redirects() -> None:
    """Have Prefect's clients take a redirect for a failure: followed, it would take what they send to another host."""
    from prefect.client import base

    for client in (base.PrefectHttpxAsyncClient, base.PrefectHttpxSyncClient):
        # Prefect asks for it in each client that it makes.
        client.follow_redirects = property(lambda _: False, lambda _, __: None)  # type: ignore[assignment]


def prepare(*, is_verbose: bool = False) -> None:
    """Set what is not set; with `is_verbose` Prefect's own logs are shown."""
    if is_verbose:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO")
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    collect_seldom()
    guard_logs()
    guard_log_records()
