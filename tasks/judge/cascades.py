"""Judging by a cascade: a first judge, and a second one for what its rule escalates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.judge.criterion import CriterionToJudge, Deliver, JudgedCriterion
from tasks.judge.responses import ResponseJudge
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.run.calls import sum_usage


@dataclass(frozen=True)
class CascadeJudge:
    """A cascade that decides criteria: the first judge, once for each repetition that counts, then
    the second one.

    All calls for a criterion are made for the cascade's verdict, so that its row holds their cost.
    The reply to a call that one of the judges has made for itself is taken from the ledger.
    """

    first_judges: Sequence[ResponseJudge]
    second_judge: ResponseJudge
    when: When

    async def judge_response(
        self,
        criteria: Sequence[CriterionToJudge],
        priority: tuple[int, ...],
        deliver: Deliver,
    ) -> None:
        """Judge the criteria of one response by the first judge, the escalated ones by the second.

        The calls of one judge follow each other, so that its provider has the conversation cached.
        """
        repetitions = [await _judged_by(judge, criteria, priority) for judge in self.first_judges]
        outcomes: dict[str, list[JudgedCriterion]] = {}
        reasons = {}
        escalated: list[CriterionToJudge] = []
        for criterion in criteria:
            # The first judge gets whole pieces, with criteria that are not missing.
            if criterion.is_missing:
                criterion_id = criterion.criterion_id
                outcomes[criterion_id] = [repetition[criterion_id] for repetition in repetitions]
                reasons[criterion_id] = self._reasons(criterion, outcomes[criterion_id])
                if reasons[criterion_id]:
                    # Criteria of one call index are a piece: each is one by itself.
                    escalated.append(replace(criterion, call_index=len(escalated)))
        second_outcomes = await _judged_by(self.second_judge, escalated, priority)
        for criterion_id, second_outcome in second_outcomes.items():
            outcomes[criterion_id].append(second_outcome)
        for criterion_id, criterion_reasons in reasons.items():
            deliver(self._decision(outcomes[criterion_id], criterion_reasons))

    def _reasons(
        self,
        criterion: CriterionToJudge,
        repetitions: Sequence[JudgedCriterion],
    ) -> list[str]:
        """Return the reasons to call the second judge.

        There are none if the first one has decided, or is not finished.
        """
        if any(judged.reply is None for judged in repetitions):
            return []
        values = [judged.verdict.value if judged.verdict else None for judged in repetitions]
        verdict = repetitions[0].verdict
        confidence = verdict.confidence if verdict else None
        return reasons_to_escalate(self.when, values, confidence, vars(criterion))

    def _decision(self, outcomes: Sequence[JudgedCriterion], reasons: list[str]) -> JudgedCriterion:
        """Return the outcome of the deciding judge with the usage of all calls.

        `outcomes` are those of the first judge's repetitions, and last that of the second judge if
        there are `reasons` to call it. It has no reply if one of the judges was not called.
        """
        replies = [judged.reply for judged in outcomes if judged.reply is not None]
        if len(replies) < len(outcomes):
            return replace(outcomes[0], reply=None)
        deciding_judge = self.first_judges[0]
        deciding_index = 0
        if reasons:
            deciding_judge = self.second_judge
            deciding_index = -1
        return replace(
            outcomes[deciding_index],
            reply=sum_usage(replies, replies[deciding_index], with_tokens=True),
            decided_by=deciding_judge.judge_config.judge.label,
            escalated_because=reasons or None,
        )


async def _judged_by(
    judge: ResponseJudge,
    criteria: Sequence[CriterionToJudge],
    priority: tuple[int, ...],
) -> dict[str, JudgedCriterion]:
    """Return the outcomes of criteria by criterion id; one without a reply was not judged."""
    judged: list[JudgedCriterion] = []
    if criteria:
        await judge.judge_response(criteria, priority, judged.append)
    return {outcome.criterion.criterion_id: outcome for outcome in judged}
