"""What made-up tasks are about, and the texts of their conversations, answers and explanations."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tasks.benchmarks.prbench import SEVERITIES
from tests.tasks.dataset.rows import hub_criterion, hub_row
from tests.tasks.report.made_up.attacks import Taint

CLIENTS = ("a dairy cooperative", "a shipyard", "two sisters who run a bakery", "a town's water company",
           "a maker of hearing aids", "a touring orchestra", "a retired surveyor")  # fmt: skip


@dataclass(frozen=True)
class Matter:
    """A subject that several tasks ask about.

    Attributes:
        question: what is asked first, with places for a client and an amount.
        points: statements that a good answer makes; they become criteria and sentences of answers.
        figures: rows of a table, each a name and a value.
        formula: a line of a calculation.
        labels: a decision type and an economic pathway.
        n_tasks: so many tasks are about it.
    """

    field: str
    topic: str
    subject: str
    question: str
    points: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]
    formula: str
    labels: tuple[str, str]
    n_tasks: int


MATTERS = (
    Matter(
        "Finance", "Corporate Finance", "the loan covenant",
        "We advise {client}. A bank offers {amount} over six years, with a covenant that net debt stays below three "
        "times EBITDA. Last year it was 2.7. Should the offer be taken?",
        ("headroom under the covenant is a tenth of the limit, or EBITDA may fall by about 10 % before it is broken",
         "EBITDA must be measured as the loan agreement defines it, not as the annual report does",
         "a breach lets the bank call the loan, also when every instalment was paid",
         "an equity cure should be negotiated before signing, since it costs little then",
         "a fixed rate of 4.8 % beats the floating one if the reference rate stays above 3.1 %",
         "seasonal inventory lifts net debt in the third quarter, which is when the covenant is tested",
         "leasing counts as debt under the definition that was offered"),
        (("Net debt / EBITDA", "2.7"), ("Limit", "3.0"), ("Headroom", "10 %")),
        "headroom = 1 - 2.7 / 3.0  # 0.10", ("Capital & Funding", "Funding Optimization"), 7,
    ),
    Matter(
        "Finance", "International Finance & FX Hedging", "the currency hedge",
        "Next May {client} will receive {amount} in Swiss francs and owes the same in euros. Compare a forward, an "
        "option and doing nothing, in a table that the board can read.",
        ("a forward takes away the gain together with the loss",
         "the premium of the option is paid now and is lost if the franc rises",
         "half of the sum may be hedged first, since the delivery is not certain",
         "the forward rate differs from the spot rate by the interest of both currencies and forecasts nothing",
         "hedge accounting needs the documentation on the day the hedge is made",
         "the bank will ask for collateral once the market value falls below an agreed sum",
         "rolling the hedge costs a spread each time"),
        (("Spot", "0.9410"), ("Forward, 7 months", "0.9335"), ("Option premium", "1.9 %")),
        "forward = spot * (1 + 0.021 * 7/12) / (1 + 0.007 * 7/12)", ("Markets & Transactions", "Risk & Resilience"), 5,
    ),
    Matter(
        "Finance", "Accounting & Financial Statement Analysis", "the revenue of the service contract",
        "In January {client} sold machines with four years of service for {amount} in one price. How much revenue "
        "belongs to this year, and what should the auditor be shown?",
        ("the machine and the service are separate obligations with a price of their own each",
         "the discount is spread over both in proportion to what each would cost alone",
         "revenue of the service is recognised over four years and not when the invoice is paid",
         "what was paid ahead is a contract liability on the balance sheet",
         "the commission of the sales staff is capitalised and written off over the contract",
         "a right to return the machine lowers the revenue of the first year"),
        (("Machine alone", "820"), ("Service alone", "280"), ("Price of both", "990")),
        "machine = 990 * 820 / (820 + 280)  # 738", ("Compliance & Reporting", "Compliance and Reporting Integrity"), 4,
    ),
    Matter(
        "Finance", "Risk Management & Stress Testing", "the liquidity stress test",
        "Please design a stress test of liquidity for {client}, which holds {amount} in deposits and short bonds. The "
        "supervisory board wants three scenarios on one page.",
        ("the outflow of the largest three creditors is a scenario of its own",
         "bonds that are pledged already cannot be sold in a crisis",
         "credit lines of the bank that is in trouble itself must not be counted",
         "a scenario lasts thirty days and is computed day by day, since the lowest point is not at its end",
         "the test is repeated when the composition of the creditors changes",
         "each scenario needs a measure that somebody is responsible for"),
        (("Base, day 30", "41"), ("Bank fails, day 11", "-6"), ("Market closes, day 19", "3")),
        "low = min(cash + sum(flows[:day]) for day in range(30))",
        ("Modeling & Measurement", "Risk & Resilience"), 4,
    ),
    Matter(
        "Finance", "Wealth Management, Financial Planning & Advice", "the pension gap",
        "I am asking for {client}. There is {amount} in savings, and the pension will cover about 60 % of what is "
        "spent today. What should be done in the next five years?",
        ("spending in today's prices has to be carried forward with inflation",
         "a reserve for two years of spending belongs in an account and not in shares",
         "taking out more than 4 % a year makes it likely that the savings are gone before the age of 90",
         "working one year longer closes about a fifth of the gap",
         "the tax on a lump sum differs from that on a monthly pension",
         "fees of 1.5 % a year take about a third of the growth in thirty years"),
        (("Spent a year", "38,400"), ("Pension", "23,000"), ("Gap", "15,400")),
        "needed = gap / 0.035  # about 440,000", ("Planning & Forecasts", "Value Creation"), 3,
    ),
    Matter(
        "Finance", "Derivatives & Structured Products", "the barrier certificate",
        "A bank has sold {client} a certificate for {amount}: 6 % a year, and all capital back as long as an index "
        "never falls below 65. It stands at 71. Explain what was bought.",
        ("the buyer has sold a put option with a barrier, and the 6 % are its premium",
         "a single touch of the barrier is enough, also for an hour",
         "the bank's default loses the capital whatever the index does",
         "below the barrier the loss is as large as that of the index from the start",
         "the price moves most when the index is close to the barrier and the term is short"),
        (("Barrier", "65"), ("Index", "71"), ("Distance", "8.5 %")),
        "loss = max(0, 1 - index_end / 100) if touched else 0",
        ("Non-decision / Informational", "Informational / Educational Only"), 1,
    ),
    Matter(
        "Legal", "Labor & Employment Law", "the dismissal",
        "On Friday {client} dismissed the only bookkeeper by e-mail and withheld {amount} in bonus. She has a child of "
        "two and works part-time. What can each side do, and until when?",
        ("the time limit for a complaint runs from the day on which the letter arrives",
         "an e-mail does not meet the written form that a dismissal needs",
         "parental leave that was asked for protects from dismissal unless an authority agrees",
         "a bonus that was paid three times without reservation may have become a claim",
         "working part-time is no reason to be chosen for dismissal first",
         "a settlement that names a sum needs a word on unemployment benefit",
         "the employer must show that no other work was there"),
        (("Time limit", "3 weeks"), ("Notice", "2 months"), ("Bonus withheld", "4,200")),
        "deadline = arrival + 21 days", ("Procedure, Forum & Jurisdiction", "Rights and Asset Protection"), 6,
    ),
    Matter(
        "Legal", "Real Estate & Property Law", "the leaking roof",
        "A tenant of {client} has paid {amount} less rent since the roof leaks; the lease says that repairs are hers. "
        "Draft what we should write to her, and say what we must not do.",
        ("a clause that puts the roof's repair on the tenant is likely void in a lease of a home",
         "rent may be reduced only from the day on which the defect was reported",
         "changing the locks without a judgment makes the landlord liable",
         "the letter sets a date for the repair and asks for access",
         "the defect has to be recorded with photographs before it is mended",
         "a notice for arrears fails where the reduction was justified"),
        (("Rent a month", "1,150"), ("Reduced by", "20 %"), ("Months", "5")),
        "arrears = 1150 * 0.20 * 5  # 1,150", ("Duty and Obligation", "Contractual Risk Allocation"), 5,
    ),
    Matter(
        "Legal", "Intellectual Property (IP) Law", "the licence of the software",
        "An engineer of {client} copied a library with a copyleft licence into a product that earned {amount}. Which "
        "duties follow, and can the product still be sold?",
        ("distributing the product is what sets off the duty to publish source, using it inside does not",
         "a notice of the licence and of its authors must go along with each copy",
         "the right to use may end with the breach and come back when it is mended in time",
         "replacing the library stops the breach only for the future",
         "linking in another process can lead to another answer than copying the code"),
        (("Copies sold", "1,900"), ("Lines copied", "640"), ("Time to mend", "30 days")),
        "exposure = copies * licence_fee", ("Rights / Entitlement / Exemptions", "Rights and Asset Protection"), 4,
    ),
    Matter(
        "Legal", "Litigation & Dispute Resolution", "the claim for late delivery",
        "A supplier was eight weeks late, and {client} lost an order worth {amount}. The contract has a penalty and an "
        "arbitration clause. Sue, arbitrate or settle?",
        ("the arbitration clause keeps the case out of the courts, but not an order that preserves evidence",
         "a penalty may be counted towards the damages and is not paid on top of them",
         "lost profit has to be shown with figures of earlier orders",
         "the buyer had to complain as soon as the delay was known",
         "costs of the arbitration are paid ahead and by both sides",
         "a letter that reserves all rights stops nothing: only a claim or an agreement stops the limitation period"),
        (("Penalty", "5 %"), ("Delay", "8 weeks"), ("Chance of success", "55 %")),
        "expected = 0.55 * claim - costs", ("Claims & Litigation Strategy", "Penalty and Damages Avoidance"), 4,
    ),
    Matter(
        "Legal", "Regulatory & Administrative Law", "the permit for the wells",
        "The authority has limited what {client} may pump, without a hearing, and the loss is {amount} a year. Which "
        "remedies are there, and do they stop the order in the meantime?",
        ("an objection has to be raised within a month with the authority itself",
         "the missing hearing can be made good later and does not win the case alone",
         "whether the objection suspends the order depends on what the order says of its immediate effect",
         "an urgent application needs figures of the harm week by week",
         "the permit's own clause on review has to be read first"),
        (("Permitted", "90,000 m³"), ("Limited to", "60,000 m³"), ("Objection within", "1 month")),
        "loss_a_week = loss_a_year / 52", ("Compliance", "Compliance Efficiency"), 3,
    ),
    Matter(
        "Legal", "Corporate & Transactional Law", "the sale of the shares",
        "The founder wants to sell 30 % of {client} for {amount}, and the articles give the others a right of first "
        "refusal. Write the steps in their order.",
        ("the offer must reach every shareholder with price and buyer before the right begins to run",
         "a transfer without the notary's deed has no effect",
         "the buyer needs a list of warranties, with a cap and a time limit",
         "merger control has to be ruled out before signing and not before closing",
         "a shareholders' agreement binds only who signed it"),
        (("Shares", "30 %"), ("Right runs for", "6 weeks"), ("Cap of warranties", "25 %")),
        "price_per_share = price / (0.30 * shares)", ("Negotiation & Deal Strategy", "Transaction Economics"), 2,
    ),
)  # fmt: skip


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
