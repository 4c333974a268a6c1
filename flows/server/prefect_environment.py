"""Settings of Prefect and the libraries below it, made before they are imported; the user's own values stay."""

import os

from tasks.console import guard_log_records
from tasks.llm import collect_seldom, guard_logs

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
    # When it ends, the server of a run logs the events that it could not store; they are of no use.
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    # The command reports failures itself, in one line; with -v in full.
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
    # Its services log every event and log line that they cannot send; that the server is gone is said once.
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    # Colours are commands to a terminal, which standard error shows and does not pass on.
    "PREFECT_LOGGING_COLORS": "false",
    # The UI shows the state of each batch; a log line for each would hide those of the stages.
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
    """Make Prefect's clients treat a redirect as a failure: followed, it would send their data to another host."""
    from prefect.client import base

    for client in (base.PrefectHttpxAsyncClient, base.PrefectHttpxSyncClient):
        # Prefect asks for it in each client that it makes.
        client.follow_redirects = property(lambda _: False, lambda _, __: None)  # type: ignore[assignment]


def prepare(*, is_verbose: bool = False) -> None:
    """Set what is not set; with `is_verbose` Prefect's own logs are shown."""
    if is_verbose:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO")
        os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "ERROR")
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    collect_seldom()
    guard_logs()
    guard_log_records()
