"""Everything that a person or a schedule starts: flows, configuration and the command line.

Importing it sets what must be set before Prefect is imported; values that the user has set stay.
"""

import os
import sys

_PREFECT = {
    # Nothing is reported to anyone.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # Prefect starts no server by itself: whoever reaches that one can have it run commands (`flows/server`).
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    # A server that is gone is waited for some seconds. By default it is asked six times, a minute each.
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    "PREFECT_API_REQUEST_TIMEOUT": "30",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
    # The UI shows the state of each batch; a log line for each would hide those of the stages.
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
}
for _name, _value in _PREFECT.items():
    os.environ.setdefault(_name, _value)
if "prefect.context" in sys.modules:  # as in a notebook that imported it first
    sys.modules["prefect.context"].refresh_global_settings_context()
