"""Files of harnesses that cannot be installed as packages, written as they write them: same keys
and order.
"""

import hashlib
import html
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.kit import write_jsonl
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

Row = dict[str, Any]


def conversation_of(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The turns of a row of PRBench, with reference texts in front of the prompts."""
    turns = []
    for i in range(10):
        prompt = row.get(f"prompt_{i}")
        if prompt:
            texts = enumerate(row.get(f"reference_texts_{i}") or [])
            turns.append(
                ("user", "".join(f"Reference Text {n}:\n{text}\n\n" for n, text in texts) + prompt)
            )
        response = row.get(f"response_{i}")
        if response:
            turns.append(("assistant", response))
    return turns


def published(path: Path, given: Sequence[Row] | None = None, **config: Any) -> Path:
    """Write the file of the published PRBench harness for the workload; failed calls are `N/A` and
    `false` in it.
    """
    points: dict[str, dict[str, list[float]]] = {"normalized": {}, "clipped": {}}
    outputs: dict[str, dict[str, Row]] = {}
    for model in MODELS:
        outputs[model] = {task_of(row): _output(model, row) for row in given or rows()}
        for kind, of in points.items():
            of[model] = [_score(kind, output) for output in outputs[model].values()]
    stated = {
        "judge_model_name": workload.JUDGE,
        "filename": "finance",
        "trial_number": 0,
        "web_search": False,
    }
    document = {
        **{
            f"mean_{kind}": {m: sum(v) / len(v) for m, v in of.items()}
            for kind, of in points.items()
        },
        **{f"points_{kind}": of for kind, of in points.items()},
        "outputs": outputs,
        "config": stated | config,
    }
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return path


def _output(model: str, row: Row) -> Row:
    task = task_of(row)
    weights = [int(weight) for weight in weights_of(row)]
    text = "N/A" if (model, task) == workload.UNANSWERED else response_to(model, task)
    met = [
        text != "N/A" and is_met(*cell) and cell != workload.UNREADABLE
        for i in range(len(weights))
        for cell in [(model, task, i)]
    ]
    convo = "".join(
        f"{role}: {content}\n" for role, content in [*conversation_of(row), ("assistant", text)]
    ).strip()
    return {
        "convo": convo,
        "id": task,
        "grades": ["true" if each else "false" for each in met],
        "points": sum(weight for weight, counts in zip(weights, met, strict=True) if counts),
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
    text = response_to(model, task_of(row))
    decided = (
        {"criteria_met": is_met(model, task, i), "explanation": f"Place {i}."}
        for i in itertools.count()
    )
    items = [{**item, **of_judge} for item, of_judge in zip(row["rubrics"], decided, strict=False)]
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
    return min(max(sum(each["score"] for each in examples) / len(examples), 0.0), 1.0)


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
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
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
        encoding="utf-8",
    )
    return path


def _section(of: Row) -> str:
    text = of["completion"][0]["content"]
    line = "[{criteria_met}] [{points}] {criterion}\n\tExplanation: {explanation}"
    graded = [line.format(**item) for item in of["rubric_items"]]
    graded.sort(key=lambda text: text.startswith("[False]"), reverse=True)
    grades = "\n\n" + "\n\n".join(graded)
    return "\n".join(
        [
            "<h3>Prompt conversation</h3>",
            *(_message(m["role"], m["content"]) for m in of["prompt"]),
            "<h3>Sampled message</h3>",
            _message("assistant", text),
            "<h3>Results</h3>",
            f"<p>Extracted Answer: {html.escape(text)}</p>",
            f"<p>Score: {of['score']}</p>",
            "<p>Rubrics with grades: " + grades.replace("\n", "<br>") + "</p>",
        ]
    )


def _message(role: str, content: str) -> str:
    return (
        f'\n<div class="message {role}">\n    <div class="role">\n    {role}\n    \n    </div>\n'
        f'    <div class="content">\n    <pre>{html.escape(content)}</pre>\n    </div>\n</div>\n'
    )


def m42(
    path: Path, model: str, given: Sequence[Row], guessed: tuple[str, int] | None = None
) -> Path:
    """Rows as m42's judge writes them; the decision on `guessed` (task, position) is the harness's
    default.
    """
    lines = []
    for row in given:
        of = example(model, row)
        graded = []
        for i, item in enumerate(of["rubric_items"]):
            guess = (
                {"criteria_met": False, "explanation": "None"}
                if (task_of(row), i) == guessed
                else item
            )
            decision = {name: guess[name] for name in ("criteria_met", "explanation")}
            graded.append(
                {
                    "response_dict": decision,
                    "points": item["points"],
                    "tags": item["tags"],
                }
            )
        lines.append(
            row
            | {
                "prompt_response": of["completion"],
                "score": of["score"],
                "metrics": str({"overall_score": 0}),
                "responses": str(graded),
            }
        )
    return write_jsonl(path, lines)
