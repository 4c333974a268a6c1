"""Everything that people and schedules start: flows, configuration and the command line.

Importing it sets Prefect's settings, which must be set before Prefect is imported; the user's own
values stay.
"""

import os
import sys

_PREFECT = {
    # No usage data is sent.
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    # Prefect starts no server by itself: anyone who can reach such a server can have commands run
    # (`flows/server.py`).
    "PREFECT_SERVER_EPHEMERAL_ENABLED": "false",
    # Wait some seconds for a server that is gone; the default is six attempts of a minute each.
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    "PREFECT_API_REQUEST_TIMEOUT": "30",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    # The UI shows the state of each batch; log lines of batches would hide those of the stages.
    "PREFECT_LOGGING_LOGGERS_PREFECT_TASK_RUNS_LEVEL": "WARNING",
}
for _name, _value in _PREFECT.items():
    os.environ.setdefault(_name, _value)
if "prefect.context" in sys.modules:  # Prefect was imported first, as in a notebook
    sys.modules["prefect.context"].refresh_global_settings_context()
