"""The topics of made-up tasks, and the texts of their conversations, responses and explanations."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.benchmarks.prbench import SEVERITIES
from tests.tasks.dataset.rows import hub_criterion, hub_row
from tests.tasks.report.synthetic.attacks import Taint


@dataclass(frozen=True)
class Matter:
    """A subject that several tasks ask about.

    Attributes:
        question: the first prompt, with placeholders for a client and an amount.
        points: statements of a good response; they become criteria and sentences of responses.
        figures: rows of a table, each a name and a value.
        formula: a line of a calculation.
        labels: a decision type and an economic pathway.
        n_tasks: number of tasks about it.
    """

    field: str
    topic: str
    subject: str
    opening: str
    points: Sequence[str]
    figures: Sequence[Sequence[str]]
    formula: str
    labels: Sequence[str]
    n_tasks: int


TEXTS = json.loads(Path(__file__).with_name("texts.json").read_text())
MATTERS = tuple(Matter(**matter) for matter in TEXTS["matters"])
CANARY = "canary-3d1f:never-beside-a-text"
"""The beginning of every task's canary."""
ACCURACY = {"Finance": "Financial Accuracy", "Legal": "Legal Accuracy"}

_BESIDE = {
    "critically important": 7,
    "important": 8,
    "slightly important": 5,
    "slightly detrimental": -5,
    "detrimental": -2,
    "critically detrimental": -6,
}


def hub_task(
    matter: Matter,
    task_id: str,
    number: int,
    taint: Taint,
    n_criteria: int | None = None,
) -> dict[str, Any]:
    """A task in the hub's shape, different for each number; `n_criteria` cuts its rubric."""
    dice = random.Random(f"task {number}")
    client = TEXTS["clients"][number % len(TEXTS["clients"])]
    amount = f"€{dice.randint(3, 180) * 50_000:,}"
    words = {
        "client": client,
        "amount": amount,
        "subject": matter.subject,
        "accuracy": ACCURACY[matter.field],
    }
    turns = dice.choices(range(1, 6), (48, 24, 14, 8, 6))[0]
    openings = [matter.opening, *dice.sample(TEXTS["next"], turns - 1)]
    columns = {
        f"prompt_{i}": taint(prompt.format(**words))
        for i, prompt in enumerate(openings)
    }
    columns |= {f"response_{i}": taint(_earlier(matter, i)) for i in range(turns - 1)}
    texts = [
        taint(
            f"Figures that {client} gave: "
            + "; ".join(map(": ".join, matter.figures))
        )
    ]
    decision, pathway = matter.labels
    is_odd = taint.is_hostile and number % 6 == 0
    return hub_row(
        task_id,
        field=matter.field,
        topic=matter.topic,
        expert=dice.choice(("Expert", "Expert", "Non-Expert"))
        if not is_odd
        else taint("Expert"),
        turns=turns,
        rubric=_rubric(matter, task_id, words, dice, taint)[:n_criteria],
        decision_type=decision + (", " + taint("Other") if number % 6 == 0 else ""),
        economic_pathway=pathway
        + (", Informational / Educational Only" if number % 5 == 0 else ""),
        canary=f"{CANARY}:{number}",
        scratchpad=f"{CANARY}: notes of the author",
        reference_texts_0=texts if number % 4 == 0 else [],
        **columns,
    )


def _earlier(matter: Matter, turn: int) -> str:
    point = matter.points[turn % len(matter.points)]
    return (
        f"**In short:** it depends on the details of {matter.subject}.\n\n- First of all,"
        f" {point}.\n- More follows."
    )


def _rubric(
    matter: Matter,
    task_id: str,
    words: dict[str, str],
    dice: random.Random,
    taint: Taint,
) -> list[dict[str, Any]]:
    points = [
        (ACCURACY[matter.field], f"States that {point}.") for point in matter.points
    ]
    titles = (*TEXTS["general"][matter.field], *TEXTS["shared"])
    general = [(category, title.format(**words)) for category, title in titles]
    good = dice.sample(points, min(len(points), dice.randint(5, 7))) + dice.sample(
        general,
        dice.randint(4, 6),
    )
    rubric = [
        (*criterion, dice.choices(list(SEVERITIES)[:3], (35, 45, 20))[0])
        for criterion in good
    ]
    for category, severity, title in dice.sample(
        TEXTS["mistakes"], dice.randint(1, 3)
    ):
        rubric.append((category.format(**words), title.format(**words), severity))
    if taint.is_hostile and dice.random() < 0.2:
        rubric[0] = (taint("Odd"), *rubric[0][1:])
    return [
        hub_criterion(
            f"{task_id}-c{position:02}",
            severity,
            _weight(severity, dice),
            criteria_category=category,
        )
        | {"title": taint(title)}
        for position, (category, title, severity) in enumerate(rubric)
    ]


def _weight(severity: str, dice: random.Random) -> int:
    """A weight in the band of its class; one in 150 is outside, for a check to find."""
    low, high = map(int, SEVERITIES[severity])
    return dice.randint(low, high) if dice.random() > 1 / 150 else _BESIDE[severity]


def response_text(
    matter: Matter,
    met: Sequence[str],
    style: int,
    dice: random.Random,
) -> str:
    """A response in Markdown with the points that it meets; a higher style is longer."""
    points = [
        title.removeprefix(_STATES).rstrip(".")
        for title in met
        if title.startswith(_STATES)
    ]
    sentences = [
        f"**{point[0].upper()}{point[1:]}.** {dice.choice(TEXTS['reasons'])}".rstrip()
        for point in points
    ]
    parts = [
        dice.choice(TEXTS["openings"]).format(matter.subject),
        "## What decides it",
    ]
    parts.append(
        "\n".join(f"{i}. {sentence}" for i, sentence in enumerate(sentences, 1))
        or "Too little is known to say."
    )
    if style >= 2:
        lines = [f"| {name} | {value} |" for name, value in matter.figures]
        parts += [
            "## The figures",
            "\n".join(["| Figure | Value |", "|---|---:|", *lines]),
        ]
    if style >= 3:
        parts += [
            "The calculation, so that it can be checked:",
            f"```python\n{matter.formula}\n```",
        ]
    if style >= 4:
        parts += [
            "## What could change this",
            f"> If a fact about {matter.subject} is otherwise, begin again at 1.",
        ]
        parts.append(
            "\n".join(
                f"- *Assumed:* {name}: {value}, as given."
                for name, value in matter.figures
            )
        )
    steps = (
        f"Write down who decides on {matter.subject}.",
        "Ask for the missing papers.",
        "Set a date, and keep it.",
    )
    return "\n\n".join(
        [
            *parts,
            "## Next steps",
            "\n".join(f"- [ ] {step}" for step in steps[: 1 + style // 2]),
        ]
    )


def explanation(
    title: str, is_met: bool, is_mistake: bool, dice: random.Random
) -> str:
    """Return a judge's explanation in one or two sentences; `title` begins with a verb, like all
    titles here.
    """
    phrase = title[0].lower() + title[1:].rstrip(".").replace(
        "tates that",
        "ays that",
        1,
    )
    if is_mistake:
        return dice.choice(TEXTS["made"] if is_met else TEXTS["avoided"]).format(
            phrase
        )
    return dice.choice(TEXTS["met"] if is_met else TEXTS["unmet"]).format(phrase)


_STATES = "States that "
