"""Numbers of trials that are unique over all parts of a harness's run."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from operator import attrgetter

from tasks.imports.results.records import LoggedResponse


class _Numbers:
    """Numbers of the different contents of each subject, such as the trials of responses to a task.

    Parts of a run may repeat a content, which then has the same number in each.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, dict[Hashable, int]] = defaultdict(dict)
        self._n_seen: Counter[Hashable] = Counter()

    def number_of(self, subject: Hashable, part: str, content: Hashable, stated: int) -> int:
        """Return the number of a content: the stated one; if it is taken, 1 more than the largest.

        A content that an earlier part has too gets the number that it has there. If parts have it
        several times, the first gets the number of the first there, the second that of the second.
        """
        self._n_seen[subject, part, content] += 1
        key = (content, self._n_seen[subject, part, content])
        numbers = self._numbers[subject]
        if key not in numbers:
            is_taken = stated in numbers.values()
            numbers[key] = max(numbers.values()) + 1 if is_taken else stated
        return numbers[key]


def with_trials(responses: Iterable[LoggedResponse]) -> Iterator[LoggedResponse]:
    """Yield the responses of runs, given part by part, with unique trials.

    Responses with the same content in different parts are one response. Other content, or the same
    content again in one part, is another trial. If a judge decided differently on one response,
    that is another repetition of the judge.
    """
    trials = _Numbers()
    judge_trials = _Numbers()
    decision_of = attrgetter("criterion", "position", "value")
    for response in responses:
        messages = tuple(response.messages or ())
        task = (response.run, response.model, response.task_id, messages)
        content = (response.text, response.status)
        trial = trials.number_of(task, response.part, content, response.trial or 1)
        judgements = []
        for judgement in response.judgements:
            decisions = tuple(map(decision_of, judgement.decisions))
            subject = (task, trial, judgement.judge)
            judge_trial = judge_trials.number_of(
                subject,
                response.part,
                decisions,
                judgement.judge_trial,
            )
            judgements.append(judgement._replace(judge_trial=judge_trial))
        yield response._replace(trial=trial, judgements=judgements)
