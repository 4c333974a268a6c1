"""Files of harnesses that cannot be installed as packages, written as they write them: same keys
and order.
"""

import hashlib
import html
import json
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

from tests.kit import Row, write_jsonl
from tests.tasks.imports.results import workload
from tests.tasks.imports.results.workload import (
    MODELS,
    is_met,
    response_to,
    rows,
    task_of,
    titles_of,
    weights_of,
)


def conversation_of(row: Row) -> list[tuple[str, str]]:
    """The turns of a row of PRBench, with reference texts in front of the prompts."""
    turns = []
    for number in range(10):
        prompt = row.get(f"prompt_{number}")
        if prompt:
            references = ""
            for position, text in enumerate(
                row.get(f"reference_texts_{number}") or []
            ):
                references += f"Reference Text {position}:\n{text}\n\n"
            turns.append(("user", references + prompt))
        response = row.get(f"response_{number}")
        if response:
            turns.append(("assistant", response))
    return turns


def published(path: Path, **config: Any) -> Path:
    """Write the file of the published PRBench harness for the workload; failed calls are `N/A` and
    `false` in it.
    """
    outputs = {}
    document = {
        "mean_normalized": {},
        "mean_clipped": {},
        "points_normalized": {},
        "points_clipped": {},
        "outputs": outputs,
        "config": {
            "judge_model_name": workload.JUDGE,
            "filename": "finance",
            "trial_number": 0,
            "web_search": False,
            **config,
        },
    }
    for model in MODELS:
        outputs[model] = {task_of(row): _output(model, row) for row in rows()}
        for kind in ("normalized", "clipped"):
            points = [_score(kind, output) for output in outputs[model].values()]
            document[f"points_{kind}"][model] = points
            document[f"mean_{kind}"][model] = fmean(points)
    path.write_text(json.dumps(document, indent=2))
    return path


def _output(model: str, row: Row) -> Row:
    task = task_of(row)
    weights = list(map(int, weights_of(row)))
    text = "N/A" if (model, task) == workload.UNANSWERED else response_to(model, task)
    grades = []
    points = 0
    for position, weight in enumerate(weights):
        is_readable = (model, task, position) != workload.UNREADABLE
        is_true = text != "N/A" and is_readable and is_met(model, task, position)
        grades.append("true" if is_true else "false")
        points += weight * is_true
    turns = [*conversation_of(row), ("assistant", text)]
    return {
        "convo": "".join(f"{role}: {content}\n" for role, content in turns).strip(),
        "id": task,
        "grades": grades,
        "points": points,
        "categories": [None] * len(weights),
        "weights": weights,
        "rubric_texts": titles_of(row),
        "field": row["field"],
    }


def _score(kind: str, output: Row) -> float:
    best = sum(weight for weight in output["weights"] if weight > 0)
    worst = sum(weight for weight in output["weights"] if weight < 0)
    points = float(output["points"])
    return points / best if kind == "clipped" else (points - worst) / (best - worst)


def example(model: str, row: Row) -> Row:
    """An example as simple-evals stores it, with the system prompt that its samplers send."""
    task = task_of(row)
    text = response_to(model, task)
    items = [
        item
        | {
            "criteria_met": is_met(model, task, position),
            "explanation": f"Number {position}.",
        }
        for position, item in enumerate(row["rubrics"])
    ]
    best = sum(item["points"] for item in items if item["points"] > 0)
    return {
        "score": sum(item["points"] for item in items if item["criteria_met"]) / best,
        "usage": {
            "input_tokens": 12,
            "input_cached_tokens": 0,
            "output_tokens": 7,
            "output_reasoning_tokens": 0,
            "total_tokens": 19,
        },
        "rubric_items": items,
        "prompt": [{"role": "system", "content": "Help."}, *row["prompt"]],
        "completion": [{"content": text, "role": "assistant"}],
        "prompt_id": task,
        "completion_id": hashlib.sha256((task + text).encode()).hexdigest(),
    }


def clipped_mean(examples: Sequence[Row]) -> float:
    mean = fmean(row["score"] for row in examples)
    return min(max(mean, 0.0), 1.0)


def simple_evals(path: Path, examples: Sequence[Row]) -> Path:
    """The file with all results."""
    score = clipped_mean(examples)
    document = {
        "score": score,
        "metrics": {"overall_score": score},
        "htmls": [],
        "convos": [],
        "metadata": {"example_level_metadata": list(examples)},
    }
    path.write_text(json.dumps(document, indent=2))
    return path


def simple_evals_html(path: Path, examples: Sequence[Row]) -> Path:
    """The HTML report: messages are escaped, grades are not, and unmet criteria come first."""
    sections = "\n<hr>\n".join(map(_section, examples))
    metrics = (
        "<table>\n<tr><td><b>Score</b></td>\n       "
        f" <td>{clipped_mean(examples):.3f}</td></tr></table>"
    )
    path.write_text(
        f"<!DOCTYPE html>\n<html><body>{metrics}\n{sections}\n<hr>\n</body></html>",
    )
    return path


def _section(row: Row) -> str:
    text = row["completion"][0]["content"]
    line = "\n\n[{criteria_met}] [{points}] {criterion}\n\tExplanation: {explanation}"
    items = sorted(row["rubric_items"], key=itemgetter("criteria_met"))
    grades = "".join(line.format(**item) for item in items)
    prompt = [
        _message(message["role"], message["content"]) for message in row["prompt"]
    ]
    return "\n".join(
        [
            "<h3>Prompt conversation</h3>",
            *prompt,
            "<h3>Sampled message</h3>",
            _message("assistant", text),
            "<h3>Results</h3>",
            f"<p>Extracted Answer: {html.escape(text)}</p>",
            f"<p>Score: {row['score']}</p>",
            "<p>Rubrics with grades: " + grades.replace("\n", "<br>") + "</p>",
        ]
    )


def _message(role: str, content: str) -> str:
    return (
        f'\n<div class="message {role}">\n    <div class="role">\n    {role}\n    \n    </div>\n'
        f'    <div class="content">\n    <pre>{html.escape(content)}</pre>\n    </div>\n</div>\n'
    )


def m42(
    path: Path,
    health_rows: Sequence[Row],
    guess: tuple[str, int] | None = None,
) -> Path:
    """Rows of the model `thorough` as m42's judge writes them; the decision on `guess` (task, position) is the harness's
    default.
    """
    lines = []
    for row in health_rows:
        graded_row = example("thorough", row)
        grades = []
        for position, item in enumerate(graded_row["rubric_items"]):
            reply = {
                "criteria_met": item["criteria_met"],
                "explanation": item["explanation"],
            }
            if (task_of(row), position) == guess:
                reply = {"criteria_met": False, "explanation": "None"}
            grades.append(
                {
                    "response_dict": reply,
                    "points": item["points"],
                    "tags": item["tags"],
                }
            )
        results = {
            "prompt_response": graded_row["completion"],
            "score": graded_row["score"],
            "metrics": str({"overall_score": 0}),
            "responses": str(grades),
        }
        lines.append(row | results)
    return write_jsonl(path, lines)
