"""How many calls of a cascade's two judges a criterion takes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import sql
from tasks.rules.cascades.rules import reasons_to_escalate
from tasks.run.judgings import CascadeJudgings, Judging
from tasks.run.missing_work import PASSING, MissingVerdicts, WantedTasks
from warehouse import Reader


class Asked(NamedTuple):
    """A judging that is asked for another one's verdicts: how often a criterion, and what that rests on, in words.

    `again` counts, by response, the missing criteria of which it is known how often they are asked: `times_again`.
    """

    judging: Judging
    times: float = 1.0
    note: str = ""
    again: Mapping[str, int] = MappingProxyType({})
    times_again: int = 0

    def calls(self, n_criteria: Mapping[str, int], n_prompts: Mapping[str, int], to_come: int) -> int:
        """How many calls that makes.

        Args:
            n_criteria: missing criteria by response.
            n_prompts: calls for each of them.
            to_come: criteria of responses that are still to come.
        """
        known = {each: self.again.get(each, 0) for each in n_criteria}
        new = sum((n - known[each]) * n_prompts[each] for each, n in n_criteria.items())
        return round((new + to_come) * self.times) + self.times_again * sum(
            n * n_prompts[each] for each, n in known.items()
        )


def asked_for(
    reader: Reader, wanted: WantedTasks, judging: Judging, missing: Sequence[MissingVerdicts] = ()
) -> list[Asked]:
    """Who is asked for a judging's verdicts: the judge itself, or both judges of a cascade.

    A missing verdict that is stored as a failure of the second judge takes one call of that judge; the first judge's
    replies are in the ledger. Of the others, the share that goes to the second judge is that of the cascade's stored
    verdicts; without any, what its rule says of the first judge's stored verdicts; without those, all is assumed.
    """
    cascade = judging.cascade
    if cascade is None:
        return [Asked(judging)]
    share, basis = _share(reader, wanted, judging, cascade)
    label = judging.judge.label
    given = {
        **judging.columns, "rubric": judging.judge.rubric, "again": list(PASSING),
        "responses": [each.response_id for each in missing],
    }  # fmt: skip
    rows = reader.rows(sql.read("questions/plan/failed_second"), given) if missing else []
    again = {row["response_id"]: row["n_criteria"] for row in rows}
    note = f"second judge of {label}, {share:.0%} of the criteria: {basis}"
    if n_again := sum(again.values()):
        note += f"; and {n_again} that it failed on before"
    return [
        Asked(cascade.first[0], len(cascade.first), f"first judge of {label}", again),
        Asked(cascade.then, share, note, again, 1),
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
