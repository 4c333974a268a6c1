"""Read the logs of a folder with Inspect itself, and print them as JSON.

Run by an interpreter with Inspect.
"""

import json
import sys

from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries

if __name__ == "__main__":
    names = [info.name for info in list_eval_logs(sys.argv[1])]
    logs = [json.loads(read_eval_log(name).model_dump_json()) for name in names]
    print(
        json.dumps(
            [
                [log, len(read_eval_log_sample_summaries(name))]
                for name, log in zip(names, logs, strict=True)
            ]
        )
    )
