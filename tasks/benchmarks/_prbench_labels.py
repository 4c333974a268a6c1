"""The decision types and economic pathways of PRBench (names: paper, tables 9 to 12), and how to tell them apart."""

from tasks.benchmarks._jurisdictions import JURISDICTIONS
from tasks.benchmarks.base import ANY_FIELD, Vocabulary

_OTHER = "fits none of the other labels"
_NO_DECISION = "asks for an explanation or background; nothing has to be decided"
_NO_CONSEQUENCE = "asks to understand something; no money, asset or liability depends on the answer"

_DECISION_TYPES = {
    "Finance": {
        "Capital & Funding": "how to finance: debt or equity, leverage, dividends, buybacks, where capital goes",
        "Compliance & Reporting": "whether records, filings and disclosures meet accounting and regulatory rules",
        "Governance & Policy": "lasting rules and positions, such as an accounting election or a risk appetite",
        "Markets & Transactions": "whether, when and at what price to trade, hedge, or do a deal",
        "Modeling & Measurement": "how to measure, value or model something, and how to read the result",
        "Non-decision / Informational": _NO_DECISION,
        "Operations, Processes & Controls": "recurring steps and controls for payments, closing, cash and the like",
        "Other": _OTHER,
        "Planning & Forecasts": "budgets, targets, forecasts and scenarios",
    },
    "Legal": {
        "Claims & Litigation Strategy": "which claims, defences and motions to bring, and how to argue them",
        "Compliance": "what to do in practice, or how to structure it, so that it keeps the law",
        "Duty and Obligation": "what somebody has to do by law or contract",
        "Governing Law & Rule": "which law, rule or clause applies to the facts, and whether it holds",
        "Negotiation & Deal Strategy": "how to bargain, and which terms to ask for or give up",
        "Non-decision / Informational": _NO_DECISION,
        "Other": _OTHER,
        "Procedure, Forum & Jurisdiction": "before which court or body a matter goes, in which steps and by when",
        "Rights / Entitlement / Exemptions": "what somebody may claim, do or be spared",
        "Risk & Outcome Forecasting": "how likely an outcome is, and how large the exposure or penalty",
    },
}
_ECONOMIC_PATHWAYS = {
    "Finance": {
        "Compliance and Reporting Integrity": "statements and disclosures are right, so that trust is kept",
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
        "Decision types", "Which kind of decision does the user need help with?", _DECISION_TYPES, most_secondary=2
    ),
    "economic_pathway": Vocabulary(
        "Economic pathways",
        "Through which economic consequence does a right or wrong answer matter to the user?",
        _ECONOMIC_PATHWAYS,
        most_secondary=2,
    ),
    "jurisdiction": Vocabulary(
        "Jurisdictions",
        "Whose law, rules or market does the request depend on? A label is a country's code of two capital letters "
        "(ISO 3166-1, such as DE), a state of the United States by its code (ISO 3166-2, such as US-CA), EU for the "
        "law of the European Union, INT for international law and standards, or NONE where it depends on no place or "
        "the place cannot be known. Give a state only where its own law matters.",
        {ANY_FIELD: JURISDICTIONS},
        most_secondary=4,
        is_listed=False,
    ),
}
"""Kind of label -> what an annotator may say. The released rows have no jurisdictions."""
