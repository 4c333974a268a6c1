"""The shape of the configuration file.

Unknown keys, wrong types and impossible values are refused. Secrets are not part of it: they come from the environment,
under LiteLLM's own names.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tasks.config.models import Analyst, Analysts, Capabilities, Endpoint, Judge, Model, Size, Strict, deciding
from tasks.config.operations import Alerts, Drift, Nightly, Report, Retention, Share

BASELINE = "baseline"
"""The name of the condition that the others are compared with; by default, it is the first one."""


def _text(given: Any) -> Any:
    """Refuse a name that YAML read as another type.

    Raises:
        ValueError: it is a boolean.
    """
    if given is True or given is False:
        raise ValueError(f"the name {given} is not a text; put it in quotes (YAML reads on, off, yes, no so)")
    return given


_Name = Annotated[str, BeforeValidator(_text), Field(min_length=1)]


def _checked(labels: dict[str, str]) -> dict[str, str]:
    """Return the conditions with the baseline first.

    Raises:
        ValueError: there is nothing to compare, or two conditions have the same label.
    """
    if len(labels) < 2:
        raise ValueError("needs at least two conditions: `baseline`, and one to compare with it")
    if len(set(labels.values())) < len(labels):
        raise ValueError("two conditions have the same label")
    first = BASELINE if BASELINE in labels else next(iter(labels))
    return {first: labels[first], **labels}


Conditions = dict[_Name, Annotated[dict[_Name, _Name], AfterValidator(_checked)]]
"""The name that a model's conditions share -> condition -> the label of the model under it, the baseline first."""


EVERY_PAIR: Literal["all"] = "all"
EARLIER_NIGHTS: Literal["earlier_nights"] = "earlier_nights"
Pairs = tuple[tuple[str, str], ...]


class Stopping(Strict):
    """The settings of an evaluation in random order, block by block, until each comparison is settled.

    `pairs` are the comparisons: `all` pairs of configured models, or the given pairs. `earlier_nights` compares each
    model with `resample: nightly` with its own values of earlier nights, to detect a drop by more than
    `least_difference`. `alpha` is the probability of any false decision among all comparisons. A difference smaller
    than `least_difference` (in the unit of the score) counts as equal. `block` is the number of tasks between two
    looks; `seed` chooses the order. Scores are the benchmark's primary score under the first judge in its first
    repetition.
    """

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    least_difference: Annotated[float, Field(gt=0)] = 0.02
    pairs: Literal["all", "earlier_nights"] | Pairs = EVERY_PAIR
    block: Annotated[int, Field(ge=1, strict=True)] = 20
    seed: Annotated[int, Field(ge=0, strict=True)] = 1

    def problems(self) -> Iterator[str]:
        """Yield a problem if pairs are given that are not of two different labels, each pair once."""
        each_once = {frozenset(pair) for pair in self.pairs}
        are_good = self.pairs and [len(pair) for pair in each_once] == [2] * len(self.pairs)
        if not isinstance(self.pairs, str) and not are_good:
            yield "`pairs` must be pairs of two different labels, each pair once"


Policy = Literal["quarantine", "warn", "fail"]


class Dataset(Strict):
    """The source of the tasks: the hub, the sample that ships, or a path to Parquet or JSON Lines.

    `files` names a file of the hub's repository for each split, if the repository's own splits do not fit. `prompts` is
    a file of lines `id<TAB>prompt` for rows without one; in a folder, a `.tsv` file is used automatically.
    """

    source: str = Field(default="hub", min_length=1)
    id: str | None = None
    revision: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    prompts: str | None = None
    splits: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """Yield settings that are missing, or that do not belong to the source."""
        if self.source == "hub" and not (self.revision and (self.splits or self.files)):
            yield "source hub needs `revision` (a commit) and `splits` (or `files`)"
        for name in ("files", "revision"):
            if self.source != "hub" and getattr(self, name):
                yield f"`{name}` belongs to source hub; with files, each is a split, and the revision is their content"
        if self.files and (strange := set(self.splits) - set(self.files)):
            yield f"`splits` names {min(strange)!r}, for which `files` has no file"
        if self.source in {"hub", "sample"} and self.prompts:
            yield "`prompts` belongs to files; the rows of the hub and of the sample have prompts"


class Rates(Strict):
    """The limits of simultaneous calls, requests and tokens per minute; null: none, or under `judge` the models'."""

    concurrency: Size | None = None
    rpm: Annotated[float, Field(gt=0)] | None = None
    tpm: Annotated[float, Field(gt=0)] | None = None


class Limits(Rates):
    """Bounds on the calls of one run.

    `concurrency`, `rpm` and `tpm` apply to models and to judges, which are counted separately; `judge` sets other
    values for judges. `attempts` and `deadline_s` (over all attempts) bound one reply; an endpoint without a reply for
    `outage_s` is stopped for the run; `max_usd` and `max_tokens` cap the run; a run waits at most `batch_wait_s` for
    provider batches.
    """

    concurrency: Size = 64
    judge: Rates = Rates()
    attempts: Size = 5
    deadline_s: Annotated[float, Field(gt=0)] | None = None
    outage_s: Annotated[float, Field(gt=0)] = 60.0
    max_usd: Annotated[float, Field(gt=0)] | None = None
    max_tokens: Size | None = None
    batch_wait_s: Annotated[float, Field(ge=0)] = 3600.0

    def rates(self, purpose: str) -> Rates:
        """Return the limits of a purpose, `sample` or `judge`."""
        own = self.judge if purpose == "judge" else Rates()
        return Rates(concurrency=own.concurrency or self.concurrency, rpm=own.rpm or self.rpm, tpm=own.tpm or self.tpm)


class Calls(Strict):
    """The processes that make calls: the run's own process, or `senders` of Ray.

    `address` is that of Ray: `local` starts it on this machine's cores, `auto` finds a cluster (`RAY_ADDRESS`, or one
    that was started on this machine), `ray://...` names one. `senders` is their total number; `auto`: one per core.
    """

    where: Literal["here", "ray"] = "here"
    address: Annotated[str, Field(pattern=r"auto|local|ray://.+")] = "auto"
    senders: Size | Literal["auto"] = "auto"

    def problems(self) -> Iterator[str]:
        """Yield settings of Ray if calls are made without it."""
        for name in ("address", "senders"):
            if self.where == "here" and getattr(self, name) != "auto":
                yield f"`{name}` belongs to `where: ray`"


class Quality(Strict):
    """The policies of checks, by name, and the ids of accepted tasks, whose quarantine is known."""

    policies: dict[str, Policy] = Field(default_factory=dict)
    accepted: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _by_check(cls, data: Any) -> Any:
        """Convert the configuration's flat form, in which check names are next to `accepted`."""
        if not isinstance(data, dict) or "policies" in data:
            return data
        policies = {name: policy for name, policy in data.items() if name != "accepted"}
        return {"policies": policies, "accepted": data.get("accepted") or ()}


class Coverage(Strict):
    """The minimum coverage of a good run."""

    min: Annotated[float, Field(ge=0, le=1)] = 0.99


class HardSubset(Strict):
    """The settings of the hard subset: a share of each field's tasks or a number by field, and the panel of models.

    `min_coverage` is the share of a field's tasks that must be complete for the whole panel; null: `coverage.min`.
    """

    share: Share | dict[str, Size] = 0.5
    panel: Literal["all"] | tuple[str, ...] = "all"
    min_coverage: Annotated[float, Field(gt=0, le=1)] | None = None


_Judges = Annotated[tuple[Judge, ...], AfterValidator(deciding)]


class Settings(Strict):
    """The configuration.

    `warehouse` is the folder of the data, relative to the configuration file (null: `PRBENCH_WAREHOUSE`, or the
    default). A judge that a cascade names works only within the cascade, and is removed from `judges`. `majorities` are
    named sets of at least three judges whose majority vote is a grader. `conditions` lists the labels that are one
    model under several conditions; `aggregate` replaces the stored conditions only if the key is present.
    `rubric_writer` is the model that rewrites criteria for judges with `rubric: augmented`. `annotator` labels tasks,
    `reviewer` checks criteria: one model each, or a list of them. `capabilities` names the models for capabilities.
    Without `stopping`, all tasks are evaluated. `prefect: off` switches recording off; it does not affect results, so
    it is not stored with them.
    """

    benchmark: str = "prbench"
    warehouse: str | None = Field(default=None, min_length=1)
    dataset: Dataset
    models: tuple[Model, ...] = ()
    judges: _Judges = ()
    rubric_writer: Endpoint | None = None
    annotator: Analysts = ()
    reviewer: Analysts = ()
    capabilities: Capabilities = Capabilities()
    trials: Size = 1
    limits: Limits = Limits()
    calls: Calls = Calls()
    quality: Quality = Quality()
    coverage: Coverage = Coverage()
    hard_subset: HardSubset = HardSubset()
    stopping: Stopping | None = None
    majorities: dict[str, Annotated[tuple[str, ...], Field(min_length=3)]] = Field(default_factory=dict)
    conditions: Conditions = Field(default_factory=dict)
    nightly: Nightly = Nightly()
    drift: Drift = Drift()
    alerts: Alerts = Alerts()
    report: Report = Report()
    retention: Retention = Retention()
    # YAML reads the word `off` as false.
    prefect: Annotated[
        Literal["auto", "off"], BeforeValidator(lambda value: "off" if value is False else value), Field(exclude=True)
    ] = "auto"

    @property
    def called_judges(self) -> tuple[Judge, ...]:
        """The judges that are called, each once; a cascade is replaced by both of its judges."""
        called = [each for judge in self.judges for each in (judge.cascade.members if judge.cascade else (judge,))]
        return tuple(judge for index, judge in enumerate(called) if judge not in called[:index])

    @property
    def capability_model(self) -> tuple[Analyst, ...]:
        """The model that describes capabilities, if there is one."""
        return () if self.capabilities.model is None else (self.capabilities.model,)

    @property
    def capability_embedding(self) -> tuple[Analyst, ...]:
        """The model that makes vectors of phrases, if there is one."""
        return () if self.capabilities.embedding is None else (self.capabilities.embedding,)
