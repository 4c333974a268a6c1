"""Cascades: a cheap judge with a strong one behind it; when to escalate, and what that costs and changes."""

from tasks.rules.cascades.candidates import Candidate, candidates, is_repeated
from tasks.rules.cascades.confidence import confidence_of
from tasks.rules.cascades.estimate import Estimate
from tasks.rules.cascades.evaluation import Bound, Evaluation, evaluate, for_choosing, front, picked
from tasks.rules.cascades.figures import Costs, Figures
from tasks.rules.cascades.verdicts import PairedVerdicts
from tasks.rules.cascades.when import FAILED, Facts, When, escalations, reasons_to_escalate

__all__ = [
    "FAILED",
    "Bound",
    "Candidate",
    "Costs",
    "Estimate",
    "Evaluation",
    "Facts",
    "Figures",
    "PairedVerdicts",
    "When",
    "candidates",
    "confidence_of",
    "escalations",
    "evaluate",
    "for_choosing",
    "front",
    "is_repeated",
    "picked",
    "reasons_to_escalate",
]
