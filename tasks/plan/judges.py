"""The judges that are called for verdicts, and how often for each criterion."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import sql
from tasks.prompts import FOLDER
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.run import missing_work
from tasks.run.judge_configs import JudgeConfig, hash_of_template
from tasks.run.missing_work import MissingVerdicts, WantedTasks
from warehouse import Reader

JUDGE_CALLS = f"({sql.read('queries/plan/judge_calls')})"
"""The calls that decided a criterion, and those that searched the chunks of a long response."""


class JudgeCalls(NamedTuple):
    """A judge that is called for verdicts: the number of calls per criterion (`times`), and the
    reason as text.

    `again` counts, by response, the missing criteria that are known to need `times_again` calls.
    """

    judge_config: JudgeConfig
    times: float = 1.0
    note: str = ""
    again: Mapping[str, int] = MappingProxyType({})
    times_again: int = 0

    def calls(
        self, n_criteria: Mapping[str, int], n_prompts: Mapping[str, int], to_come: int
    ) -> int:
        """Return the number of calls.

        Args:
            n_criteria: missing criteria by response (pieces, for a judge of groups).
            n_prompts: calls for each of these, by response.
            to_come: the same number for responses that are not sampled yet.
        """
        repeated = sum(self.again.get(each, 0) * n_prompts[each] for each in n_criteria)
        total = sum(n * n_prompts[each] for each, n in n_criteria.items())
        return round((total - repeated + to_come) * self.times) + self.times_again * repeated


def judges_to_call(
    reader: Reader,
    wanted: WantedTasks,
    judge_config: JudgeConfig,
    missing: Sequence[MissingVerdicts] = (),
) -> list[JudgeCalls]:
    """Return the judges to call for verdicts: the judge itself, or both judges of a cascade.

    A missing verdict that is stored as a failure of the second judge needs one call of that judge;
    the first judge's replies are in the ledger. For the other criteria, the share that goes to the
    second judge is that of the cascade's stored verdicts; without any, the share that its rule
    escalates of the first judge's stored verdicts; else all are assumed to go there.
    """
    cascade = judge_config.cascade
    if cascade is None:
        return [JudgeCalls(judge_config)]
    share, basis = _share(reader, wanted, judge_config, cascade.first, cascade.when)
    label = judge_config.judge.label
    given = {
        **judge_config.columns,
        "rubric": judge_config.judge.rubric,
        "again": list(missing_work.PASSING),
        "responses": [each.response_id for each in missing],
    }
    rows = reader.rows(sql.read("queries/plan/failed_second"), given) if missing else []
    again = {row["response_id"]: row["n_criteria"] for row in rows}
    # If the second judge failed on all missing criteria, a first judge's call for several of them
    # is in the ledger.
    decided = (
        again
        if cascade.first[0].piece_size is None
        else {
            each.response_id: each.n_calls
            for each in missing
            if again.get(each.response_id) == each.n_criteria
        }
    )
    free = "replies that are stored are free"
    note = f"second judge of {label}, {share:.0%} of the criteria: {basis}"
    n_again = sum(again.values())
    if n_again:
        note += f"; and {n_again} that it failed on before"
    return [
        JudgeCalls(
            cascade.first[0], len(cascade.first), f"first judge of {label}, {free}", decided
        ),
        JudgeCalls(cascade.then, share, f"{note}; {free}", again, 1),
    ]


def _share(
    reader: Reader,
    wanted: WantedTasks,
    judge_config: JudgeConfig,
    repetitions: Sequence[JudgeConfig],
    when: When,
) -> tuple[float, str]:
    """Return the share of criteria that are escalated, and its source."""
    counts = "count(*) as n_verdicts, count(escalated_because) as n_escalated"
    (stored,) = reader.select("verdicts", counts, **wanted.key, **identity_of(judge_config))
    if stored["n_verdicts"]:
        return stored["n_escalated"] / stored["n_verdicts"], "as in its stored verdicts"
    first = repetitions[0]
    given = {
        **wanted.key,
        "judge_config_hash": first.judge_config_hash,
        "template_hash": first.template_hash,
        "n_repetitions": len(repetitions),
    }
    rows = reader.rows(sql.read("queries/plan/first_verdicts"), given)
    if rows:
        reasons = [
            reasons_to_escalate(when, row["first_values"], row["confidence"], row) for row in rows
        ]
        return (
            sum(map(bool, reasons)) / len(rows),
            f"by its rule on the stored verdicts of {first.judge.label}",
        )
    return 1.0, "assumed, because no stored verdict shows the share"


def judged_before(reader: Reader, wanted: WantedTasks, judge_config: JudgeConfig) -> str:
    """Return a line on verdicts that are repeated because they have another template; empty if
    there are none.
    """
    rows = reader.rows(
        sql.read("queries/plan/decided_before"), {**wanted.key, **judge_config.columns}
    )
    if not rows:
        return ""
    shipped = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
    names = {hash_of_template(text, wanted.benchmark): name for name, text in shipped.items()}
    name = names.get(rows[0]["template_hash"])
    which = f"template {name} (`template: {name}` goes on with it)" if name else "another template"
    return (
        f"{rows[0]['n_verdicts']} verdicts were made with {which}; they are kept together with the"
        " new ones"
    )


def identity_of(judge_config: JudgeConfig) -> dict[str, Any]:
    """Return the columns that identify the rows of a judge, over all its repetitions."""
    return {
        name: judge_config.columns[name] for name in ("judge", "judge_config_hash", "template_hash")
    }
