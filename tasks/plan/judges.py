"""The judges that are called for verdicts, and how often for each criterion."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sql
from tasks.llm.request import prices_of
from tasks.plan.estimate import PerCall, Planned, measured_per_call, planned_calls
from tasks.prompts import FOLDER
from tasks.rules.cascades.rules import reasons_to_escalate
from tasks.run import missing_work
from tasks.run.judge_configs import CascadeConfigs, JudgeConfig, hash_of_template, judge_target
from tasks.run.missing_work import MissingVerdicts, WantedTasks
from warehouse import Reader

_JUDGE_CALLS = f"({sql.read('queries/plan/judge_calls')})"
"""The calls that decided a criterion, and those that searched the chunks of a long response."""


class ResponseCalls(NamedTuple):
    """The calls of a judge on a stored response.

    Attributes:
        n_pieces: the missing criteria, or the pieces of the rubric for a judge of groups.
        n_prompts: the calls for each of these.
    """

    n_pieces: int
    n_prompts: int = 1


class JudgeCalls(NamedTuple):
    """A judge that is called for verdicts.

    Attributes:
        judge_config: its configuration.
        calls_per_piece: the number of calls for a piece; below 1 if it gets only some of them.
        note: its part in a cascade and why it is called so often, in words; empty outside one.
        failed_pieces: response id -> the number of its missing pieces on which the second judge
            of a cascade failed before.
        calls_per_failed: the number of calls for such a piece.
    """

    judge_config: JudgeConfig
    calls_per_piece: float = 1.0
    note: str = ""
    failed_pieces: Mapping[str, int] = {}
    calls_per_failed: int = 0

    def n_calls(self, responses: Mapping[str, ResponseCalls], n_expected: int) -> int:
        """Return the number of calls on stored responses, by their ids, and on expected ones.

        `n_expected` is the number of pieces of the rubrics of responses that are not sampled yet.
        """
        n_usual = n_expected
        n_failed = 0
        for response_id, response in responses.items():
            n_failed_pieces = self.failed_pieces.get(response_id, 0)
            n_usual += (response.n_pieces - n_failed_pieces) * response.n_prompts
            n_failed += n_failed_pieces * response.n_prompts
        return round(n_usual * self.calls_per_piece) + self.calls_per_failed * n_failed


def identity_of(judge_config: JudgeConfig) -> dict[str, Any]:
    """Return the columns that identify the rows of a judge, over all its repetitions."""
    columns = judge_config.columns
    return {name: columns[name] for name in ("judge", "judge_config_hash", "template_hash")}


def measured_judge_call(reader: Reader, judge_config: JudgeConfig) -> PerCall:
    """Return the mean tokens of a judge's stored calls."""
    return measured_per_call(reader, _JUDGE_CALLS, **identity_of(judge_config))


def plan_measured(
    reader: Reader,
    judge_config: JudgeConfig,
    stage: str,
    n_calls: int,
    label: str,
) -> Planned:
    """Return the plan of `n_calls` calls of a judge; their tokens are those of its stored calls."""
    prices = prices_of(judge_target(judge_config.judge))
    per_call = measured_judge_call(reader, judge_config)
    return planned_calls(stage, label, n_calls, per_call, prices)


def judges_to_call(
    reader: Reader,
    job_tasks: WantedTasks,
    judge_config: JudgeConfig,
    responses: Sequence[MissingVerdicts] = (),
) -> list[JudgeCalls]:
    """Return the judges to call for verdicts: the judge itself, or both judges of a cascade; none
    for a panel.

    `responses` are those that lack verdicts. A missing verdict that is stored as a failure of the
    second judge needs one call of that judge: the first judge's replies are in the ledger. Of the
    other criteria, the share that goes to the second judge is that of the cascade's stored
    verdicts; without any, the share that its rule escalates of the first judge's stored verdicts;
    without these, all.
    """
    if judge_config.panel:
        return []
    cascade = judge_config.cascade
    if cascade is None:
        return [JudgeCalls(judge_config)]
    share, basis = _escalated_share(reader, job_tasks, judge_config, cascade)
    failed_criteria = _failed_second(reader, judge_config, responses)
    label = judge_config.judge.label
    free_note = "replies that are stored are free"
    note = f"second judge of {label}, {share:.0%} of the criteria: {basis}"
    if failed_criteria:
        note += f"; and {sum(failed_criteria.values())} that it failed on before"
    return [
        JudgeCalls(
            judge_config=cascade.first[0],
            calls_per_piece=len(cascade.first),
            note=f"first judge of {label}, {free_note}",
            failed_pieces=_decided_by_first(cascade, failed_criteria, responses),
        ),
        JudgeCalls(
            judge_config=cascade.then,
            calls_per_piece=share,
            note=f"{note}; {free_note}",
            failed_pieces=failed_criteria,
            calls_per_failed=1,
        ),
    ]


def _failed_second(
    reader: Reader,
    judge_config: JudgeConfig,
    responses: Sequence[MissingVerdicts],
) -> dict[str, int]:
    """Return, by response, the missing criteria on which a cascade's second judge failed."""
    parameters = {
        **judge_config.columns,
        "rubric": judge_config.judge.rubric,
        "temporary_failures": list(missing_work.TEMPORARY_FAILURES),
        "responses": [response.response_id for response in responses],
    }
    rows = reader.query("queries/plan/failed_second", parameters)
    return {row["response_id"]: row["n_criteria"] for row in rows}


def _decided_by_first(
    cascade: CascadeConfigs,
    failed_criteria: Mapping[str, int],
    responses: Sequence[MissingVerdicts],
) -> Mapping[str, int]:
    """Return, by response, the pieces for which the first judge's replies are in the ledger.

    For a judge of groups this is certain only if the second one failed on all missing criteria.
    """
    if cascade.first[0].piece_size is None:
        return failed_criteria
    return {
        response.response_id: response.n_calls
        for response in responses
        if failed_criteria.get(response.response_id) == response.n_criteria
    }


def _escalated_share(
    reader: Reader,
    job_tasks: WantedTasks,
    judge_config: JudgeConfig,
    cascade: CascadeConfigs,
) -> tuple[float, str]:
    """Return the share of criteria that a cascade escalates, and its source in words."""
    counts = "count(*) as n_verdicts, count(escalated_because) as n_escalated"
    (totals,) = reader.select("verdicts", counts, **job_tasks.key, **identity_of(judge_config))
    if totals["n_verdicts"]:
        return totals["n_escalated"] / totals["n_verdicts"], "as in its stored verdicts"
    first_judge = cascade.first[0]
    parameters = {
        **job_tasks.key,
        "judge_config_hash": first_judge.judge_config_hash,
        "template_hash": first_judge.template_hash,
        "n_repetitions": len(cascade.first),
    }
    rows = reader.query("queries/plan/first_verdicts", parameters)
    if not rows:
        return 1.0, "assumed, because no stored verdict shows the share"
    n_escalated = 0
    for row in rows:
        if reasons_to_escalate(cascade.when, row["first_values"], row["confidence"], row):
            n_escalated += 1
    source = f"by its rule on the stored verdicts of {first_judge.judge.label}"
    return n_escalated / len(rows), source


def judged_before(reader: Reader, job_tasks: WantedTasks, judge_config: JudgeConfig) -> str:
    """Return a line on verdicts that are repeated because they have another template; empty if
    there are none.
    """
    parameters = {**job_tasks.key, **judge_config.columns}
    rows = reader.query("queries/plan/decided_before", parameters)
    if not rows:
        return ""
    template = "another template"
    for path in FOLDER.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        if hash_of_template(text, job_tasks.benchmark) == rows[0]["template_hash"]:
            template = f"template {path.stem} (set `template: {path.stem}` to keep it)"
    n_verdicts = rows[0]["n_verdicts"]
    return (
        f"{n_verdicts} verdicts were made with {template}; they are kept together with the new ones"
    )
