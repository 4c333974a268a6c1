"""How many calls of a cascade's two judges a criterion takes."""

from typing import NamedTuple

import sql
from tasks.rules.cascades import reasons_to_escalate
from tasks.run import CascadeJudgings, Judging, WantedTasks
from warehouse import Reader


class Asked(NamedTuple):
    """A judging that is asked for another one's verdicts: how often a criterion, and what that rests on, in words."""

    judging: Judging
    times: float = 1.0
    note: str = ""


def asked_for(reader: Reader, wanted: WantedTasks, judging: Judging) -> list[Asked]:
    """Who is asked for a judging's verdicts: the judge itself, or both judges of a cascade.

    The share that goes to the second judge is that of the cascade's stored verdicts; without any, what its rule says of
    the first judge's stored verdicts; without those, all is assumed.
    """
    cascade = judging.cascade
    if cascade is None:
        return [Asked(judging)]
    share, basis = _share(reader, wanted, judging, cascade)
    label = judging.judge.label
    return [
        Asked(cascade.first[0], len(cascade.first), f"first judge of {label}"),
        Asked(cascade.then, share, f"second judge of {label}, {share:.0%} of the criteria: {basis}"),
    ]


def _share(reader: Reader, wanted: WantedTasks, judging: Judging, cascade: CascadeJudgings) -> tuple[float, str]:
    """The share of criteria that are escalated, and what says so."""
    own = {name: judging.columns[name] for name in ("judge", "judge_config_hash", "template_hash")}
    (stored,) = reader.rows(sql.read("questions/plan/escalated"), {**wanted.key, **own})
    if stored["n_verdicts"]:
        return stored["n_escalated"] / stored["n_verdicts"], "as in its stored verdicts"
    first = cascade.first[0]
    given = {
        **wanted.key, "judge_config_hash": first.judge_config_hash, "template_hash": first.template_hash,
        "n_repetitions": len(cascade.first),
    }  # fmt: skip
    rows = reader.rows(sql.read("questions/plan/first_verdicts"), given)
    if rows:
        n_escalated = sum(
            bool(reasons_to_escalate(cascade.when, row["first_values"], row["weight"], row["category"],
                                     row["confidence"]))
            for row in rows
        )  # fmt: skip
        return n_escalated / len(rows), f"as its rule says of stored verdicts of {first.judge.label}"
    return 1.0, "assumed, since nothing is stored that would say how many"
