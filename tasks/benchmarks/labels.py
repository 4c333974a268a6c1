"""The labels that PRBench's data may carry (paper, figures 2 and 11, tables 7 to 12)."""

_SHARED_CATEGORIES = {"Handling Uncertainty", "Instruction Following", "Practical Utility", "Supplemental Insight"}

PRBENCH_VOCABULARIES: dict[str, dict[str, frozenset[str]]] = {
    "Finance": {
        "category": frozenset(
            _SHARED_CATEGORIES
            | {"Financial Accuracy", "Process Transparency & Auditability", "Risk & Regulatory Disclosure"}
        ),
        "decision_type": frozenset({
            "Capital & Funding", "Compliance & Reporting", "Governance & Policy", "Markets & Transactions",
            "Modeling & Measurement", "Non-decision / Informational", "Operations, Processes & Controls", "Other",
            "Planning & Forecasts",
        }),
        "economic_pathway": frozenset({
            "Compliance and Reporting Integrity", "Funding Optimization", "Informational / Educational Only",
            "Operating Efficiency", "Other", "Risk & Resilience", "Value Creation",
        }),
    },
    "Legal": {
        "category": frozenset(
            _SHARED_CATEGORIES
            | {"Application of Law to the Facts", "Legal Accuracy", "Procedural Correctness",
               "Risk & Ethical Disclosure"}
        ),
        "decision_type": frozenset({
            "Claims & Litigation Strategy", "Compliance", "Duty and Obligation", "Governing Law & Rule",
            "Negotiation & Deal Strategy", "Non-decision / Informational", "Other",
            "Procedure, Forum & Jurisdiction", "Rights / Entitlement / Exemptions", "Risk & Outcome Forecasting",
        }),
        "economic_pathway": frozenset({
            "Compliance Efficiency", "Contractual Risk Allocation", "Informational / Educational Only",
            "Market Access", "Other", "Penalty and Damages Avoidance", "Rights and Asset Protection",
            "Transaction Economics",
        }),
    },
}  # fmt: skip
