"""The targets of models, and judge configurations: a judge with its template, grading and trial."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.config.models import ORIGINAL, Cascade, Endpoint, Judge, Model, address_problems
from tasks.llm.embedded import is_embedded
from tasks.llm.providers import EnvironmentAddress, address_of
from tasks.llm.request import Prices, Target
from tasks.prompts import load_evidence_template, load_template, shipped_templates
from tasks.rules.cascades.rules import When
from tasks.rules.conversation import DECISION_PLACEHOLDERS, GROUP_PLACEHOLDERS
from tasks.rules.errors import UsageError
from tasks.rules.evidence import WORDING
from tasks.rules.identity import IMPORTED, template_hash
from tasks.rules.verdict import TERNARY
from warehouse import Row


def target_of(endpoint: Endpoint, *, reads_address: bool = True) -> Target:
    """Return the target of a configured model's calls; its address may come from the environment.

    Args:
        endpoint: the configured model.
        reads_address: false for the identity that such a model had before addresses of the
            environment were part of it.

    Raises:
        UsageError: no request can use the address in the environment, or it contains a secret.
    """
    prices = None
    if endpoint.price is not None:
        prices = Prices(**endpoint.price.model_dump(), price_table="configuration")
    # Settings other than name, address and parameters that distinguish its replies; unset ones are
    # left out.
    identity: dict[str, Any] = {"omits_think_tag": True} if endpoint.omits_think_tag else {}
    if isinstance(endpoint, Model) and endpoint.system_prompt is not None:
        identity["system_prompt"] = endpoint.system_prompt
    address = endpoint.api_base
    variable = None
    from_environment = _environment_address(endpoint) if reads_address else None
    if from_environment is not None:
        variable, address = from_environment
    return Target(
        name=endpoint.name,
        api_base=address,
        parameters=endpoint.parameters,
        timeout_s=endpoint.timeout_s,
        fallback=endpoint.fallback if isinstance(endpoint, Model) else {},
        identity=identity,
        headers=endpoint.headers,
        is_streamed=endpoint.stream,
        prices=prices,
        ends_ok=endpoint.ends_ok,
        address_variable=variable,
        retires_on=endpoint.retires_on,
    )


def _environment_address(endpoint: Endpoint) -> EnvironmentAddress | None:
    """Return the address that the environment gives a model; None if it has a configured one, or
    runs in this process.

    Raises:
        UsageError: no request can use the address, or it contains a secret.
    """
    if endpoint.api_base is not None or is_embedded(endpoint.name):
        return None
    from_environment = address_of(endpoint.name, endpoint.parameters)
    if from_environment is not None:
        variable, address = from_environment
        problem = next(address_problems(address, variable), None)
        if problem is not None:
            raise UsageError(f"{endpoint.name}: {problem}")
    return from_environment


def model_hash(model: Model) -> str:
    """Return the configuration hash of a model's responses."""
    return IMPORTED if model.is_imported else target_of(model).config_hash


def judge_target(judge: Judge, *, reads_address: bool = True) -> Target:
    """Return the target of a judge's calls; its identity includes the judge's rubric, groups and
    shape of replies.

    A cascade has the target of its second judge, with an identity of its own, made of both judges
    and its rule.
    """
    target = target_of(judge, reads_address=reads_address)
    # Settings that are unset, or as they always were, are left out: identities stay the same.
    identity = dict(target.identity)
    if judge.explanation_chars is not None:
        identity["explanation_chars"] = judge.explanation_chars
    if judge.structured_output is not None:
        identity["structured_output"] = judge.structured_output
    if judge.rubric != ORIGINAL:
        identity["rubric"] = judge.rubric
    if judge.piece_size is not None:
        identity["criteria_per_call"] = judge.criteria_per_call
    if judge.is_decision_model and judge.grading != TERNARY:
        identity["threshold"] = judge.least_probability
    if judge.majority:
        identity["majority"] = {
            "members": sorted(
                judge_target(member, reads_address=reads_address).config_hash
                for member in judge.panel_members
            ),
            "votes": judge.votes,
        }
    if judge.cascade is not None:
        first_judge, _ = judge.cascade.members
        when = judge.cascade.when.rule
        identity["cascade"] = {
            "first": judge_target(first_judge, reads_address=reads_address).config_hash,
            "repetitions": when.n_repetitions(first_judge.trials),
            "when": when.conditions,
        }
    return replace(target, identity=identity, wants_logprobs=judge.logprobs)


class CascadeConfigs(NamedTuple):
    """The judge configurations of a cascade: its first judge in each of the repetitions that count,
    then its second.
    """

    first: tuple["JudgeConfig", ...]
    then: "JudgeConfig"
    when: When


@dataclass(frozen=True, kw_only=True)
class JudgeConfig:
    """A judge with all settings that distinguish its verdicts.

    With `evidence_template`, responses that are too long for the judge are searched for evidence
    chunk by chunk; without it, they are a failure (`context_length`). A cascade's configuration
    holds those of its judges; its template is that of the second one.
    """

    judge: Judge
    judge_config_hash: str
    template: str
    template_hash: str
    grading: str
    judge_trial: int
    evidence_template: str | None = None
    cascade: CascadeConfigs | None = None
    panel: tuple["JudgeConfig", ...] = ()

    @property
    def piece_size(self) -> int | None:
        """The number of criteria that the judge, or a cascade's first one, decides in a call; None:
        each by itself.
        """
        return self.cascade.first[0].piece_size if self.cascade else self.judge.piece_size

    @property
    def live(self) -> "JudgeConfig":
        """The same judge, called at once and not in the provider's batches."""
        # `allow_live` is for calls that failed in a batch, and here none is in one.
        changes = {"mode": "live", "allow_live": False}
        return replace(self, judge=self.judge.model_copy(update=changes))

    @property
    def columns(self) -> Row:
        """The columns that identify the judge configuration on a verdict."""
        return {
            "judge": self.judge.label,
            "judge_config_hash": self.judge_config_hash,
            "template_hash": self.template_hash,
            "grading": self.grading,
            "judge_trial": self.judge_trial,
        }


def judge_configs(job: Job, benchmark: Benchmark) -> list[JudgeConfig]:
    """Return every configured judge in every judge trial; a cascade only once."""
    configs = []
    for judge in job.settings.judges:
        configs.extend(configs_of(judge, benchmark))
    return configs


def first_judge_config(
    job: Job,
    benchmark: Benchmark,
    stored_configs: Sequence[Row],
) -> Mapping[str, Any] | None:
    """Return the first configured judge's stored configuration, else one with a configured label,
    else the first.
    """
    configured = [judge_config.columns for judge_config in judge_configs(job, benchmark)]
    labels = [{"judge": columns["judge"]} for columns in configured]
    for columns in (*configured[:1], *labels, {}):  # {}: any stored configuration
        for config in stored_configs:
            if columns.items() <= config.items():
                return config
    return None


def configs_of(
    judge: Judge,
    benchmark: Benchmark,
    *,
    reads_address: bool = True,
) -> list[JudgeConfig]:
    """Return the configurations of a judge, one for each judge trial.

    A cascade has one; if the templates of its judges differ, its template's identity is made of
    both. `reads_address` is that of `target_of`.
    """
    grading = judge.grading or benchmark.grading
    if judge.is_decision_model:
        if grading == TERNARY and judge.threshold is not None:
            raise UsageError(
                f"judge {judge.label}: `threshold` is for `grading: binary`, not for"
                f" {benchmark.name}'s"
            )
        # `judge_target` needs the grading: unless it is ternary, the threshold is part of the
        # identity.
        judge = judge.model_copy(update={"grading": grading})
    config_hash = judge_target(judge, reads_address=reads_address).config_hash
    if judge.cascade is not None:
        return [_cascade_config(judge, judge.cascade, config_hash, benchmark)]
    if judge.majority:
        return _panel_configs(judge, config_hash, benchmark)
    template = template_of(judge, benchmark)
    configs = []
    for judge_trial in range(1, judge.trials + 1):
        config = JudgeConfig(
            judge=judge,
            judge_config_hash=config_hash,
            template=template,
            template_hash=hash_of_template(template, benchmark),
            grading=grading,
            judge_trial=judge_trial,
            evidence_template=_evidence_template(template, benchmark),
        )
        configs.append(config)
    return configs


def _cascade_config(
    judge: Judge,
    cascade: Cascade,
    config_hash: str,
    benchmark: Benchmark,
) -> JudgeConfig:
    """Return the configuration of a cascade, with those of its judges."""
    when = cascade.when.rule
    first_configs, second_configs = (configs_of(member, benchmark) for member in cascade.members)
    second = second_configs[0]
    hash_of_both = first_configs[0].template_hash
    if hash_of_both != second.template_hash:
        hash_of_both = template_hash(hash_of_both, second.template_hash)
    n_repetitions = when.n_repetitions(len(first_configs))
    return JudgeConfig(
        judge=judge,
        judge_config_hash=config_hash,
        template=second.template,
        template_hash=hash_of_both,
        grading=second.grading,
        judge_trial=1,
        evidence_template=second.evidence_template,
        cascade=CascadeConfigs(tuple(first_configs[:n_repetitions]), second, when),
    )


def _panel_configs(
    judge: Judge,
    config_hash: str,
    benchmark: Benchmark,
) -> list[JudgeConfig]:
    """Return the configurations of a panel, one for each judge trial, with those of its votes.

    Judge trial t of a panel counts the members' trials t, or the next `votes` of them. If the
    templates of its members differ, its template's identity is made of all.
    """
    configs_of_members = [configs_of(member, benchmark) for member in judge.panel_members]
    first_configs = [configs[0] for configs in configs_of_members]
    hash_of_all = first_configs[0].template_hash
    if len({config.template_hash for config in first_configs}) > 1:
        pairs = [f"{config.judge_config_hash} {config.template_hash}" for config in first_configs]
        hash_of_all = template_hash(*sorted(pairs))
    panel_configs = []
    for judge_trial in range(1, judge.trials + 1):
        counted_trials = slice((judge_trial - 1) * judge.votes, judge_trial * judge.votes)
        votes: list[JudgeConfig] = []
        for configs in configs_of_members:
            votes += configs[counted_trials]
        panel_configs.append(
            JudgeConfig(
                judge=judge,
                judge_config_hash=config_hash,
                template=votes[0].template,
                template_hash=hash_of_all,
                grading=votes[0].grading,
                judge_trial=judge_trial,
                panel=tuple(votes),
            )
        )
    return panel_configs


def refuse_unlike_gradings(judge: Judge, benchmark: Benchmark) -> None:
    """Refuse a cascade or panel whose judges grade in different ways.

    Raises:
        UsageError: they do.
    """
    members = judge.panel_members or judge.members
    gradings = [member.grading or benchmark.grading for member in members]
    if len(set(gradings)) > 1:
        named_gradings = ", ".join(
            f"{member.label} {grading}" for member, grading in zip(members, gradings, strict=True)
        )
        raise UsageError(
            f"judge {judge.label}: its judges grade in different ways: {named_gradings}; give all"
            " the same `grading`"
        )


def hash_of_template(template: str, benchmark: Benchmark) -> str:
    """Return the identity of a judge's template, including its evidence template for the benchmark,
    if any.
    """
    evidence = _evidence_template(template, benchmark)
    if evidence is None:
        return template_hash(template)
    return template_hash(template, evidence, *WORDING)


def templates_by_hash(job: Job, benchmark: Benchmark) -> dict[str, str]:
    """Return the texts of shipped templates, and of configured ones for one criterion a call, by
    their identity.
    """
    configs = judge_configs(job, benchmark)
    texts = [config.template for config in configs if config.piece_size is None]
    return {hash_of_template(text, benchmark): text for text in [*shipped_templates(), *texts]}


def _evidence_template(template: str, benchmark: Benchmark) -> str | None:
    """Return the template for the chunks of a long response that goes with a judge's template.

    None if responses stay whole.
    """
    name = benchmark.evidence_template
    return None if name is None else load_evidence_template(name, template)


def template_of(judge: Judge, benchmark: Benchmark) -> str:
    """Return the text of a judge's template.

    Raises:
        UsageError: there is no such template, or the benchmark is not graded that way.
    """
    grading = judge.grading or benchmark.grading
    if grading not in benchmark.gradings:
        gradings = " or ".join(benchmark.gradings)
        raise UsageError(
            f"judge {judge.label}: {benchmark.name} is graded {gradings}, not {grading}"
        )
    try:
        default = benchmark.gradings[grading]
        if judge.is_decision_model:
            return load_template(judge.template, "decisions_v1", DECISION_PLACEHOLDERS)
        if judge.piece_size is not None:
            # For example, binary_v2 -> binary_group_v1.
            group_default = re.sub(r"^(.*?)(_v\d+)?(\.\w+)?$", r"\1_group_v1\3", default)
            return load_template(judge.template, group_default, GROUP_PLACEHOLDERS)
        return load_template(judge.template, default)
    except UsageError as error:
        raise UsageError(f"judge {judge.label}: {error}") from error
