"""PRBench (Scale AI, arXiv 2511.11562): 1,100 expert tasks in finance and law with weighted
rubrics.

The names of decision types and economic pathways are those of the paper (tables 9 to 12).
"""

from dataclasses import replace
from importlib.resources import files
from operator import attrgetter

from tasks.benchmarks.base import (
    ANY_FIELD,
    USUAL_INVARIANTS,
    Benchmark,
    DataRow,
    Reference,
    ReviewReference,
    Vocabulary,
)
from tasks.benchmarks.rows import (
    as_items,
    as_list,
    as_mapping,
    as_text,
    as_whole_number,
    cell_label,
    cell_text,
    criterion_from,
    nested,
    split_labels,
    task_from,
)
from tasks.rules.conversation import build_messages, turn_pattern
from tasks.rules.identity import digest
from tasks.rules.records import Criterion, ScoreDefinition, Task, Turn
from tasks.rules.text.characters import is_blank

_STATES = """
AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI
SC SD TN TX UT VT VA WA WV WI WY
"""


_COUNTRIES = files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text(encoding="utf-8")
_JURISDICTIONS = {
    # Country codes (ISO 3166-1 alpha-2) with names, as the time zone database lists them.
    **dict(
        line.split("\t")[:2]
        for line in _COUNTRIES.splitlines()
        if line and not line.startswith("#")
    ),
    **{f"US-{state}": f"the state {state} of the United States" for state in _STATES.split()},
    "EU": "law of the European Union",
    "INT": "international law and standards",
    "NONE": "no place, or none that can be known",
}


_OTHER = "fits none of the other labels"
_NO_DECISION = "asks for an explanation or background; nothing has to be decided"
_NO_CONSEQUENCE = "asks to understand something; no money, asset or liability depends on the answer"

_DECISION_TYPES = {
    "Finance": {
        "Capital & Funding": (
            "how to finance: debt or equity, leverage, dividends, buybacks, where capital goes"
        ),
        "Compliance & Reporting": (
            "whether records, filings and disclosures meet accounting and regulatory rules"
        ),
        "Governance & Policy": (
            "lasting rules and positions, such as an accounting election or a risk appetite"
        ),
        "Markets & Transactions": "whether, when and at what price to trade, hedge, or do a deal",
        "Modeling & Measurement": (
            "how to measure, value or model something, and how to read the result"
        ),
        "Non-decision / Informational": _NO_DECISION,
        "Operations, Processes & Controls": (
            "recurring steps and controls for payments, closing, cash and the like"
        ),
        "Other": _OTHER,
        "Planning & Forecasts": "budgets, targets, forecasts and scenarios",
    },
    "Legal": {
        "Claims & Litigation Strategy": (
            "which claims, defences and motions to bring, and how to argue them"
        ),
        "Compliance": "what to do in practice, or how to structure it, so that it keeps the law",
        "Duty and Obligation": "what somebody has to do by law or contract",
        "Governing Law & Rule": (
            "which law, rule or clause applies to the facts, and whether it holds"
        ),
        "Negotiation & Deal Strategy": "how to bargain, and which terms to ask for or give up",
        "Non-decision / Informational": _NO_DECISION,
        "Other": _OTHER,
        "Procedure, Forum & Jurisdiction": (
            "before which court or body a matter goes, in which steps and by when"
        ),
        "Rights / Entitlement / Exemptions": "what somebody may claim, do or be spared",
        "Risk & Outcome Forecasting": (
            "how likely an outcome is, and how large the exposure or penalty"
        ),
    },
}
_ECONOMIC_PATHWAYS = {
    "Finance": {
        "Compliance and Reporting Integrity": (
            "statements and disclosures are right, so that trust is kept"
        ),
        "Funding Optimization": "money is raised or kept at lower cost or with more freedom",
        "Informational / Educational Only": _NO_CONSEQUENCE,
        "Operating Efficiency": "the same is done at lower cost, or capital is used better",
        "Other": "has an economic consequence that fits none of the other labels",
        "Risk & Resilience": "less is exposed to market, credit, liquidity or operational risk",
        "Value Creation": "profit, value or investment return rises",
    },
    "Legal": {
        "Compliance Efficiency": "rules are met with less cost and effort",
        "Contractual Risk Allocation": "contract terms decide who bears which risk",
        "Informational / Educational Only": _NO_CONSEQUENCE,
        "Market Access": "licences or approvals that are needed to do business are won or kept",
        "Other": "has an economic consequence that fits none of the other labels",
        "Penalty and Damages Avoidance": "fines, damages or sanctions are avoided",
        "Rights and Asset Protection": "property, claims or rights are secured or won back",
        "Transaction Economics": "the structure of a deal or its taxes makes it worth more",
    },
}

ANNOTATIONS = {
    "decision_type": Vocabulary(
        "Decision types",
        "Which kind of decision does the user need help with?",
        _DECISION_TYPES,
        most_secondary=2,
    ),
    "economic_pathway": Vocabulary(
        "Economic pathways",
        "Through which economic consequence does a right or wrong answer matter to the user?",
        _ECONOMIC_PATHWAYS,
        most_secondary=2,
    ),
    "jurisdiction": Vocabulary(
        "Jurisdictions",
        "Whose law, rules or market does the request depend on? A label is a country's code of two"
        " capital letters (ISO 3166-1, such as DE), a state of the United States by its code (ISO"
        " 3166-2, such as US-CA), EU for the law of the European Union, INT for international law"
        " and standards, or NONE where it depends on no place or the place cannot be known. Give a"
        " state only where its own law matters.",
        {ANY_FIELD: _JURISDICTIONS},
        most_secondary=4,
        is_listed=False,
    ),
}
"""Kind of label -> the labels that an annotator may give. The released rows have no jurisdictions.
"""


TURNS = 10
COLUMNS = (
    "task",
    "turns",
    "field",
    "topic",
    "expert",
    "scratchpad",
    "rubric",
    *(f"{kind}_{i}" for i in range(TURNS) for kind in ("prompt", "reference_texts")),
    *(f"{kind}_{i}" for i in range(TURNS - 1) for kind in ("response", "model")),
    "economic_pathway",
    "decision_type",
    "canary",
)

SEVERITIES = {
    "critically important": (8.0, 10.0),
    "important": (4.0, 7.0),
    "slightly important": (1.0, 3.0),
    "slightly detrimental": (-3.0, -1.0),
    "detrimental": (-7.0, -4.0),
    "critically detrimental": (-10.0, -8.0),
}
"""Weight class -> lowest and highest weight (paper, table 2)."""

_COMMON_CATEGORIES = {
    "Handling Uncertainty",
    "Instruction Following",
    "Practical Utility",
    "Supplemental Insight",
}

_CATEGORIES = {
    "Finance": {
        "Financial Accuracy",
        "Process Transparency & Auditability",
        "Risk & Regulatory Disclosure",
    },
    "Legal": {
        "Application of Law to the Facts",
        "Legal Accuracy",
        "Procedural Correctness",
        "Risk & Ethical Disclosure",
    },
}

VOCABULARIES: dict[str, dict[str, frozenset[str]]] = {
    field: {
        "category": frozenset(_COMMON_CATEGORIES | categories),
        "decision_type": frozenset(ANNOTATIONS["decision_type"].labels[field]),
        "economic_pathway": frozenset(ANNOTATIONS["economic_pathway"].labels[field]),
    }
    for field, categories in _CATEGORIES.items()
}
"""The labels that the data may carry, by field and kind (paper, figures 2 and 11, tables 7 to 12).
Unlike in `ANNOTATIONS`, they have no descriptions.
"""


_hashed_values = attrgetter(
    "criterion_id", "title", "weight", "weight_text", "severity", "category"
)
"""Gets the parts of a criterion that the content hash of its task includes, in this order."""


def parse_row(row: DataRow) -> Task:
    """Return a row in the hub's shape as a task.

    Errors in a rubric or a conversation are kept, so that checks find them. The author's
    scratchpad, and the names of models that wrote earlier turns, are not read.

    Raises:
        RowError: the row has no task id.
    """
    turns = as_whole_number(row.get("turns"))
    conversation = _conversation(row)
    field = cell_label(row, "field")
    topic = cell_label(row, "topic")
    expert = cell_label(row, "expert")
    decision_types = _labels(row, "decision_type", field)
    economic_pathways = _labels(row, "economic_pathway", field)
    criteria = [
        _criterion(position, item) for position, item in enumerate(as_items(row.get("rubric")))
    ]
    content_hash = digest(
        "task",
        build_messages(conversation),
        list(map(_hashed_values, criteria)),
        field,
        topic,
        expert,
        turns,
        decision_types,
        economic_pathways,
    )
    task = task_from(
        cell_label(row, "task"),
        conversation,
        criteria,
        field=field,
        canary=cell_label(row, "canary"),
    )
    return replace(
        task,
        topic=topic,
        expert=expert,
        turns=turns,
        turn_pattern=turn_pattern(conversation, turns),
        decision_types=decision_types,
        economic_pathways=economic_pathways,
        content_hash=content_hash,
    )


def _labels(row: DataRow, kind: str, field: str | None) -> tuple[str, ...]:
    """Return the labels of a kind. A label may hold a comma, so the field's vocabulary is needed to
    split them.
    """
    vocabulary = VOCABULARIES.get(field or "", {})
    return split_labels(cell_label(row, kind), vocabulary.get(kind, ()))


def _conversation(row: DataRow) -> tuple[Turn, ...]:
    slots = []
    for number in range(TURNS):
        prompt = cell_text(row, f"prompt_{number}")
        response = cell_text(row, f"response_{number}")
        name = f"reference_texts_{number}"
        references = []
        for reference in as_list(nested(row.get(name))):
            text = as_text(reference, f"`{name}`")
            if text and not is_blank(text):
                references.append(text)
        slots.append(Turn(prompt, tuple(references), response))
    while slots and slots[-1] == Turn(None, (), None):
        slots.pop()
    return tuple(slots)


def _criterion(position: int, item: DataRow) -> Criterion:
    annotations = as_mapping(nested(item.get("annotations")))
    severity = cell_label(annotations, "weight_class")
    # The fields of other classes may hold old weights after edits, so only the field that
    # weight_class names counts.
    weight = None
    if severity:
        weight = annotations.get(f"{severity.replace(' ', '_')}_weight")
    return criterion_from(
        cell_label(item, "id") or f"position-{position}",
        position,
        cell_text(item, "title"),
        weight,
        category=cell_label(annotations, "criteria_category"),
        severity=severity,
    )


SCORES = (
    ScoreDefinition(
        "score",
        numerator_negative=0.0,
        denominator_positive=1.0,
        denominator_negative=0.0,
        clips_mean=True,
        is_primary=True,
    ),
    ScoreDefinition(
        "min_normalized",
        numerator_negative=-1.0,
        denominator_positive=1.0,
        denominator_negative=-1.0,
        clips_mean=False,
        is_primary=False,
    ),
)
"""The scores of equations 1 and 2 and of equations 3 and 4 of the paper (appendix D)."""

_PAPER = "arXiv 2511.11562"
_JUDGE = "o4-mini"

REVIEWED = ReviewReference(0.939, f"{_PAPER}, appendix E; no interval given")

FIGURE_SOURCES = {
    "review_agreement": (
        f"appendix E of the paper, where experts agree with {REVIEWED.value * 100:.1f} % of"
        " criteria"
    ),
    "leaderboard": "equation 2 and figures 1 and 5 of the paper",
    "categories": "equation 4 and figure 6 of the paper",
    "length_score": "figure 7 of the paper",
    **dict.fromkeys(("splits", "task_experts", "task_criteria"), "table 1 of the paper"),
    "task_topics": "figure 2 of the paper",
    **dict.fromkeys(("task_decision_types", "task_economic_pathways"), "figure 8 of the paper"),
    "weights": "figure 10 of the paper",
    "criterion_severities": "table 2 of the paper",
    "criterion_categories": "figure 11 of the paper",
    "judge_agreement": (
        "table 3 of the paper, where the best judge reaches a macro-F1 of 0.802 and a kappa of"
        " 0.605 with the experts, and two experts 0.813 and 0.589 with each other"
    ),
}

_HARD_SCORES = {
    "Gemini 2.5 Pro": (0.266, 0.297),
    "o3 (high)": (0.336, 0.352),
    "GPT-5 (high)": (0.394, 0.377),
    "Sonnet 4.5": (0.323, 0.294),
    "Grok 4 Fast Reasoning": (0.314, 0.325),
}
"""Model -> its score on the finance and on the legal hard split, without tools (paper, table 5)."""

_BEST = "best of 20 models"
_FIGURE_5 = f"figure 5 of {_PAPER} (November 2025), mean of three runs"
_TABLE_5 = f"table 5 of {_PAPER} (November 2025), one run without tools"
REFERENCES = (
    Reference("finance", 600, _JUDGE, _BEST, 0.51, _FIGURE_5),
    Reference("legal", 500, _JUDGE, _BEST, 0.50, _FIGURE_5),
    *(
        Reference("finance_hard", 300, _JUDGE, model, finance_score, _TABLE_5)
        for model, (finance_score, _) in _HARD_SCORES.items()
    ),
    *(
        Reference("legal_hard", 250, _JUDGE, model, legal_score, _TABLE_5)
        for model, (_, legal_score) in _HARD_SCORES.items()
    ),
)
"""Measured on the first release of the data, which differs from later revisions in tasks and
criteria.
"""

BENCHMARK = Benchmark(
    name="prbench",
    title="PRBench: professional reasoning in finance and law",
    columns=COLUMNS,
    parse_row=parse_row,
    invariants={
        **USUAL_INVARIANTS,
        "weight_range": {"lowest": -10, "highest": 10, "is_whole": True},
        "criteria_per_task": {"fewest": 10, "most": 30},
        "weight_class_known": {"classes": list(SEVERITIES)},
        "weight_in_band": {},
        "turns_contiguous": {"alternate": True, "are_stated": True},
    },
    scores=SCORES,
    gradings={"binary": "binary_v2"},
    default_dataset_id="ScaleAI/PRBench",
    licence="cc-by-4.0",
    severities=SEVERITIES,
    vocabularies=VOCABULARIES,
    annotations=ANNOTATIONS,
    hard_splits={"Finance": "finance_hard", "Legal": "legal_hard"},
    figure_sources=FIGURE_SOURCES,
    references=REFERENCES,
    review_reference=REVIEWED,
)
