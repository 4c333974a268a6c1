"""Has a harness evaluate the workload and write its log; run by an interpreter that has the harness.

Arguments: the harness, the address of the provider, the rows as JSONL, the benchmark, the folder for what is written.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

MODELS = ("thorough", "brief")
JUDGE = "strict"


_PARTS: dict[str, dict[str, Any]] = {"prbench": {"subset_list": ["finance"]}, "health_bench": {}}


def inspect(api_base: str, rows: Path, benchmark: str, out: Path) -> None:
    """One log a model, with two epochs; the scorer stores each criterion and leaves undecided ones open."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, get_model
    from inspect_ai.scorer import Score, mean, scorer
    from inspect_ai.solver import generate

    os.environ |= {"WORKLOAD_BASE_URL": api_base, "WORKLOAD_API_KEY": "none"}

    @scorer(metrics=[mean()], name="rubric")
    def rubric() -> Any:
        judge = get_model(f"openai-api/workload/{JUDGE}")

        async def score(state: Any, target: Any) -> Any:
            del target
            found: list[dict[str, Any]] = []
            for item in state.metadata["rubric"]:
                said = "\n".join(f"{message.role}: {message.text}" for message in state.messages)
                reply = await judge.generate(f"{said}\n\nIs this met?\n{item['title']}")
                try:
                    decided = json.loads(reply.completion)
                except ValueError:
                    decided = {"criteria_met": None, "explanation": None, "error": "no JSON"}
                found.append({**item, **decided})
            if any(item["criteria_met"] is None for item in found):
                return Score(value=float("nan"), answer=state.output.completion, metadata={"criteria": found})
            points = sum(item["weight"] for item in found if item["criteria_met"])
            best = sum(item["weight"] for item in found if item["weight"] > 0)
            return Score(value=points / best, answer=state.output.completion, metadata={"criteria": found})

        return score

    given = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    roles = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}
    samples = [
        Sample(
            id=row["task"],
            input=[roles[message["role"]](content=message["content"]) for message in row["messages"]],
            metadata={"rubric": row["rubric"]},
        )
        for row in given
    ]
    for model in MODELS:
        evaluate(
            Task(dataset=MemoryDataset(samples, name=benchmark), solver=generate(), scorer=rubric(), epochs=2),
            model=f"openai-api/workload/{model}", log_dir=str(out), display="none", fail_on_error=False,
            log_format="eval",
        )  # fmt: skip


def shortened(_api_base: str, logs: Path, _benchmark: str, out: Path) -> None:
    """Logs of Inspect without their events and tracebacks, which name places of a machine, as the tests keep them."""
    from inspect_ai.log import read_eval_log, write_eval_log

    for path in sorted(logs.glob("*.eval")):
        log = read_eval_log(str(path))
        for sample in log.samples or []:
            sample.events, sample.events_data, sample.attachments = [], None, {}
            if sample.error is not None:
                sample.error.traceback = sample.error.traceback_ansi = ""
        name = log.eval.model.rpartition("/")[2]
        write_eval_log(log, str(out / f"{name}.eval"))
        if name == "brief":
            write_eval_log(log, str(out / f"{name}.json"))


def evalscope(api_base: str, rows: Path, benchmark: str, out: Path) -> None:
    """One folder for both models."""
    from evalscope import TaskConfig, run_task

    for model in MODELS:
        run_task(TaskConfig(
            model=model, api_url=api_base, api_key="none", eval_type="openai_api", datasets=[benchmark],
            dataset_args={benchmark: {"local_path": str(rows.parent)} | _PARTS[benchmark]},
            judge={"strategy": "llm", "models": [{"model_id": JUDGE, "api_url": api_base, "api_key": "none"}]},
            work_dir=str(out), no_timestamp=True, ignore_errors=True, eval_batch_size=4,
            generation_config={"retries": 0, "stream": False},
        ))  # fmt: skip


if __name__ == "__main__":
    harness, address, file, name, folder = sys.argv[1:]
    {"inspect": inspect, "evalscope": evalscope, "shortened": shortened}[harness](
        address, Path(file), name, Path(folder)
    )
