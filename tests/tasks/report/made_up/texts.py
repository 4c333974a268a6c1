"""The words of the made-up warehouse: rubrics, conversations, answers in Markdown, and what judges say of them."""

import random
from collections.abc import Sequence
from typing import Any

from tasks.benchmarks.prbench import SEVERITIES
from tests.tasks.dataset.rows import hub_criterion, hub_row
from tests.tasks.report.made_up.attacks import Taint
from tests.tasks.report.made_up.matters import CLIENTS, Matter

CANARY = "canary-3d1f:never-beside-a-text"
"""Begins the canary of every task."""
ACCURACY = {"Finance": "Financial Accuracy", "Legal": "Legal Accuracy"}

_GENERAL: dict[str, tuple[tuple[str, str], ...]] = {
    "Finance": (
        ("Process Transparency & Auditability", "Shows how each figure on {subject} was computed."),
        ("Process Transparency & Auditability", "Names the source of every rate that it uses for {subject}."),
        ("Risk & Regulatory Disclosure", "Says what can be lost with {subject} in the worst case."),
    ),
    "Legal": (
        ("Application of Law to the Facts", "Applies each rule to what is known about {subject}."),
        ("Procedural Correctness", "Puts the steps concerning {subject} in the order in which they are due."),
        ("Risk & Ethical Disclosure", "Says who else has an interest in {subject} that may differ."),
    ),
}
_SHARED = (
    ("Practical Utility", "Ends with what is to be done about {subject} first, by whom and until when."),
    ("Practical Utility", "Can be handed on to {client} without being rewritten."),
    ("Instruction Following", "Has the form that was asked for and answers every question about {subject}."),
    ("Handling Uncertainty", "Keeps apart what is known about {subject} and what is assumed."),
    ("Handling Uncertainty", "Names the fact that would turn the advice on {subject} round."),
    ("Supplemental Insight", "Points out a consequence of {subject} that was not asked about."),
)
_MISTAKES = (
    ("Handling Uncertainty", "critically detrimental", "Advises on {subject} with certainty though facts are missing."),
    ("{accuracy}", "critically detrimental", "Makes up a figure, a source or a rule to do with {subject}."),
    ("Practical Utility", "detrimental", "Sends {client} to an adviser instead of answering."),
    ("Instruction Following", "detrimental", "Leaves out a part of what was asked about {subject}."),
    ("Supplemental Insight", "slightly detrimental", "Digresses from {subject} into general remarks."),
)
_BESIDE = {
    "critically important": 7, "important": 8, "slightly important": 5,
    "slightly detrimental": -5, "detrimental": -2, "critically detrimental": -6,
}  # fmt: skip
_NEXT = (
    "Thank you. What changes if it has to be decided this week?",
    "Assume that the figure is a fifth lower. Does your advice on {subject} stand?",
    "Please shorten this to what {client} must know, and keep the reasons.",
    "They ask for a second opinion. Which of your points on {subject} would you expect it to doubt?",
)


def hub_task(matter: Matter, task_id: str, number: int, taint: Taint, n_criteria: int | None = None) -> dict[str, Any]:
    """A task in the hub's shape, different for each number; `n_criteria` cuts its rubric."""
    dice = random.Random(f"task {number}")
    client, amount = CLIENTS[number % len(CLIENTS)], f"€{dice.randint(3, 180) * 50_000:,}"
    words = {"client": client, "amount": amount, "subject": matter.subject, "accuracy": ACCURACY[matter.field]}
    turns = dice.choices(range(1, 6), (48, 24, 14, 8, 6))[0]
    prompts = [matter.question.format(**words), *(each.format(**words) for each in dice.sample(_NEXT, turns - 1))]
    columns: dict[str, Any] = {f"prompt_{i}": taint(prompt) for i, prompt in enumerate(prompts)}
    columns |= {f"response_{i}": taint(_earlier(matter, i)) for i in range(turns - 1)}
    texts = [taint(f"Figures that {client} gave: " + "; ".join(map(": ".join, matter.figures)))]
    decision, pathway = matter.labels
    is_odd = taint.is_hostile and number % 6 == 0
    return hub_row(
        task_id,
        field=matter.field,
        topic=matter.topic,
        expert=dice.choice(("Expert", "Expert", "Non-Expert")) if not is_odd else taint("Expert"),
        turns=turns,
        rubric=_rubric(matter, task_id, words, dice, taint)[:n_criteria],
        decision_type=decision + (", " + taint("Other") if number % 6 == 0 else ""),
        economic_pathway=pathway + (", Informational / Educational Only" if number % 5 == 0 else ""),
        canary=f"{CANARY}:{number}",
        scratchpad=f"{CANARY}: notes of the author",
        reference_texts_0=texts if number % 4 == 0 else [],
        **columns,
    )


def _earlier(matter: Matter, turn: int) -> str:
    point = matter.points[turn % len(matter.points)]
    return f"**In short:** it depends on the details of {matter.subject}.\n\n- First of all, {point}.\n- More follows."


def _rubric(
    matter: Matter, task_id: str, words: dict[str, str], dice: random.Random, taint: Taint
) -> list[dict[str, Any]]:
    points = [(ACCURACY[matter.field], f"States that {point}.") for point in matter.points]
    general = [(category, title.format(**words)) for category, title in (*_GENERAL[matter.field], *_SHARED)]
    good = dice.sample(points, min(len(points), dice.randint(5, 7))) + dice.sample(general, dice.randint(4, 6))
    rubric = [(*each, dice.choices(list(SEVERITIES)[:3], (35, 45, 20))[0]) for each in good]
    for category, severity, title in dice.sample(_MISTAKES, dice.randint(1, 3)):
        rubric.append((category.format(**words), title.format(**words), severity))
    if taint.is_hostile and dice.random() < 0.2:
        rubric[0] = (taint("Odd"), *rubric[0][1:])
    return [
        hub_criterion(
            f"{task_id}-c{position:02}", severity, _weight(severity, dice), criteria_category=category,
        ) | {"title": taint(title)}
        for position, (category, title, severity) in enumerate(rubric)
    ]  # fmt: skip


def _weight(severity: str, dice: random.Random) -> int:
    """A weight in the band of its class; one in a hundred and fifty lies beside it, for a check to find."""
    low, high = map(int, SEVERITIES[severity])
    return dice.randint(low, high) if dice.random() > 1 / 150 else _BESIDE[severity]


def answer(matter: Matter, met: Sequence[str], style: int, dice: random.Random) -> str:
    """An answer in Markdown that says what it meets; a higher style is longer."""
    said = [title.removeprefix(_STATES).rstrip(".") for title in met if title.startswith(_STATES)]
    points = [
        f"{i}. **{point[0].upper()}{point[1:]}.** {dice.choice(_REASONS)}".rstrip() for i, point in enumerate(said, 1)
    ]
    parts = [dice.choice(_OPENINGS).format(matter.subject), "## What decides it"]
    parts.append("\n".join(points) or "Too little is known to say.")
    if style >= 2:
        lines = [f"| {name} | {value} |" for name, value in matter.figures]
        parts += ["## The figures", "\n".join(["| Figure | Value |", "|---|---:|", *lines])]
    if style >= 3:
        parts += ["The calculation, so that it can be checked:", f"```python\n{matter.formula}\n```"]
    if style >= 4:
        parts += ["## What could change this", f"> If a fact about {matter.subject} is otherwise, begin again at 1."]
        parts.append("\n".join(f"- *Assumed:* {name}: {value}, as given." for name, value in matter.figures))
    steps = (f"Write down who decides on {matter.subject}.", "Ask for the missing papers.", "Set a date, and keep it.")
    return "\n\n".join([*parts, "## Next steps", "\n".join(f"- [ ] {step}" for step in steps[: 1 + style // 2])])


def explanation(title: str, is_met: bool, is_mistake: bool, dice: random.Random) -> str:
    """What a judge says of a decision, in a sentence or two; `title` begins with a verb, as all titles here do."""
    phrase = title[0].lower() + title[1:].rstrip(".").replace("tates that", "ays that", 1)
    if is_mistake:
        return dice.choice(_MADE if is_met else _AVOIDED).format(phrase)
    return dice.choice(_MET if is_met else _UNMET).format(phrase)


_STATES = "States that "
_OPENINGS = (
    "The short answer on {}: go ahead, but not on these terms.",
    "Before anything is signed, {} needs three things settled.",
    "My advice on {} rests on the figures that you gave, and on two assumptions.",
)
_REASONS = (
    "This is settled first, since the rest follows from it.", "It costs little to check.", "The papers show it.",
    "Many overlook this.", "Ask for it in writing.", "",
)  # fmt: skip
_MET = (
    "The answer {0}, in its numbered list.",
    "In the second section it {0}. The wording differs, the meaning does not.",
    "It {0}, though briefly and without an example.",
)
_UNMET = (
    "The answer never {0}.",
    "Looked for a place where it {0}, and found none. A hint in the closing lines is too vague to count.",
    "It comes close, but it does not do what is asked for. An answer that meets this {0}.",
)
_MADE = ("The answer {0}; see its last section.", "Here it {0}, and does not say so.")
_AVOIDED = ("The answer never {0}.", "It avoids this. Nowhere can it be said that it {0}.")
