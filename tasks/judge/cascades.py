"""Judging by a cascade: a first judge, and a second one for what its rule escalates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.judge.criterion import CriterionToJudge, Done, JudgedCriterion
from tasks.judge.long_responses import ResponseJudge
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.run.calls import sum_usage


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides criteria: its first judge in each repetition that counts, then its
    second.

    All calls for a criterion are made for the cascade's verdict, so that its row holds their cost.
    The reply to a call that one of the judges has made for itself is taken from the ledger.
    """

    first: Sequence[ResponseJudge]
    then: ResponseJudge
    when: When

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], done: Done
    ) -> None:
        """Judge the criteria of one response by the first judge, then the escalated ones by the
        second judge.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """

        async def judged_by(
            judge: ResponseJudge, some: Sequence[CriterionToJudge]
        ) -> dict[str, JudgedCriterion]:
            outcomes: list[JudgedCriterion] = []
            if some:
                await judge.judge_response(some, priority, outcomes.append)
            return {each.criterion.criterion_id: each for each in outcomes}

        first = [await judged_by(judge, criteria) for judge in self.first]
        criteria = [row for row in criteria if row.is_missing]  # the first judge gets whole pieces
        why = {
            row.criterion_id: self._reasons(row, [of[row.criterion_id] for of in first])
            for row in criteria
        }
        escalated = [row for row in criteria if why[row.criterion_id]]
        then = await judged_by(
            self.then, [replace(row, call_index=n) for n, row in enumerate(escalated)]
        )
        for key, reasons in why.items():
            judged = [of[key] for of in (*first, then) if key in of]
            replies = [each.reply for each in judged if each.reply is not None]
            if len(replies) < len(judged):  # one was not called: no decision
                done(replace(judged[0], reply=None))
                continue
            at, by = (-1, self.then) if reasons else (0, self.first[0])
            usage = sum_usage(replies, replies[at], with_tokens=True)
            decision = {
                "decided_by": by.judge_config.judge.label,
                "escalated_because": reasons or None,
            }
            done(replace(judged[at], reply=usage, columns={**judged[at].columns, **decision}))

    def _reasons(self, criterion: CriterionToJudge, first: Sequence[JudgedCriterion]) -> list[str]:
        """Return the reasons to call the second judge; none if the first has decided, or is not
        finished.
        """
        if first[0].reply is None or any(each.reply is None for each in first):
            return []
        confidence = first[0].verdict.confidence if first[0].verdict else None
        values = [each.verdict.value if each.verdict else None for each in first]
        return reasons_to_escalate(self.when, values, confidence, vars(criterion))
