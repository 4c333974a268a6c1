"""Read the logs of a folder with Inspect itself, and print them as JSON.

Run by an interpreter with Inspect.
"""

import json
import sys

from inspect_ai.log import (
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)

if __name__ == "__main__":
    logs = []
    for info in list_eval_logs(sys.argv[1]):
        log = json.loads(read_eval_log(info.name).model_dump_json())
        logs.append([log, len(read_eval_log_sample_summaries(info.name))])
    print(json.dumps(logs))
