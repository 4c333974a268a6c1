"""Judging by a cascade: a first judge, and a second one for what its rule escalates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.judge.criterion import CriterionToJudge, Deliver, JudgedCriterion
from tasks.judge.responses import ResponseJudge
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.run.calls import sum_usage


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides criteria: its first judge in each repetition that counts, then its
    second.

    All calls for a criterion are made for the cascade's verdict, so that its row holds their cost.
    The reply to a call that one of the judges has made for itself is taken from the ledger.
    """

    first_judges: Sequence[ResponseJudge]
    second_judge: ResponseJudge
    when: When

    async def judge_response(
        self, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...], deliver: Deliver
    ) -> None:
        """Judge the criteria of one response by the first judge, the escalated ones by the second.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """
        repetitions = []
        for judge in self.first_judges:
            repetitions.append(await _judged_by(judge, criteria, priority))
        # The first judge gets whole pieces, with criteria that are not missing.
        missing_criteria = [criterion for criterion in criteria if criterion.is_missing]
        outcomes = {}
        reasons = {}
        escalated: list[CriterionToJudge] = []
        for criterion in missing_criteria:
            key = criterion.criterion_id
            outcomes[key] = [repetition[key] for repetition in repetitions]
            reasons[key] = self._reasons(criterion, outcomes[key])
            if reasons[key]:
                escalated.append(replace(criterion, call_index=len(escalated)))
        second = await _judged_by(self.second_judge, escalated, priority)
        for criterion in missing_criteria:
            key = criterion.criterion_id
            if key in second:
                outcomes[key].append(second[key])
            deliver(self._decision(outcomes[key], reasons[key]))

    def _reasons(
        self, criterion: CriterionToJudge, repetitions: Sequence[JudgedCriterion]
    ) -> list[str]:
        """Return the reasons to call the second judge.

        There are none if the first one has decided, or is not finished.
        """
        if any(judged.reply is None for judged in repetitions):
            return []
        values = [judged.verdict.value if judged.verdict else None for judged in repetitions]
        verdict = repetitions[0].verdict
        confidence = verdict.confidence if verdict else None
        facts = {
            "weight": criterion.weight,
            "category": criterion.category,
            "severity": criterion.severity,
            "kinds": criterion.kinds,
        }
        return reasons_to_escalate(self.when, values, confidence, facts)

    def _decision(self, outcomes: Sequence[JudgedCriterion], reasons: list[str]) -> JudgedCriterion:
        """Return the outcome of the deciding judge with the usage of all calls.

        It has no reply if one of the judges was not called.
        """
        replies = [judged.reply for judged in outcomes if judged.reply is not None]
        if len(replies) < len(outcomes):
            return replace(outcomes[0], reply=None)
        if reasons:
            judge = self.second_judge
            deciding = outcomes[-1]
            reply = replies[-1]
        else:
            judge = self.first_judges[0]
            deciding = outcomes[0]
            reply = replies[0]
        return replace(
            deciding,
            reply=sum_usage(replies, reply, with_tokens=True),
            decided_by=judge.judge_config.judge.label,
            escalated_because=reasons or None,
        )


async def _judged_by(
    judge: ResponseJudge, criteria: Sequence[CriterionToJudge], priority: tuple[int, ...]
) -> dict[str, JudgedCriterion]:
    """Return the missing criteria by id, as a judge has decided them."""
    judged: list[JudgedCriterion] = []
    if criteria:
        await judge.judge_response(criteria, priority, judged.append)
    return {outcome.criterion.criterion_id: outcome for outcome in judged}
