"""The job of one run: the configuration, and the run's own choices."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, PrivateAttr
from pydantic_core import CoreSchema

from tasks.config.models import Model, Size, Strict
from tasks.config.settings import Settings
from tasks.rules.identity import BASE_VINTAGE


class DataRevision(Strict):
    """A data set at one revision: the hub's commit, or the content hash of its files; `splits` are
    the chosen ones.
    """

    name: str
    revision: str
    splits: tuple[str, ...]


class Succession(Strict):
    """The sample with which a new judge is compared with an old one.

    Attributes:
        old_judge: the label of the old judge, which has verdicts.
        new_judge: the label of the new one, which is configured.
        n_verdicts: about how many verdicts the new judge makes.
        seed: the seed of the sample.
        width: the sample grows until no interval is wider; None: it does not grow.
        interval_of: the intervals that `width` is about: of the effects on `scores`, or of their
            differences between models, which decide `ranks`.
        look: the number of times that the widths were looked at, this one included; None without
            `width`.
    """

    old_judge: str
    new_judge: str
    n_verdicts: Size
    seed: int = 0
    width: float | None = None
    interval_of: Literal["scores", "ranks"] = "scores"
    look: Size | None = None


class Job(Strict):
    """One run: the configuration, narrowed by the command line, on one warehouse.

    The revision of the data set is looked up when it is first needed, once for the job and all its
    copies.

    Attributes:
        settings: the configuration; its models and judges are already the chosen ones.
        warehouse: the folder of the data.
        warehouse_source: the option, variable or file that names this folder, for messages.
        location_options: the options that name the same configuration, data and benchmark in
            another command, such as `--config /srv/prbench.yaml`.
        run_id: the id of the run, which its rows have.
        limit: the number of tasks to use; None: all.
        vintage: the vintage of all models; in a night, only of those that are not resampled each
            night.
        named_models: the labels that the command names; None if it names none. Labels of imported
            responses may be among them.
        named_judges: the same of judges.
        named_tasks: the tasks to which the work is narrowed; None: all.
        named_trials: the trials to which the work is narrowed; None: all.
        vocabularies: the kinds of labels for annotation; none: all.
        compared_models: with `stopping`, all configured models, also those that the command does
            not name; else empty.
        configured_labels: the labels of all models and judges, for hints on mistyped names.
        n_neighbour_responses: the number of responses in the sample of `prbench neighbours`.
        succession: the sample of `prbench succeed`; None for other commands.
        night: the label of the run's night, which is the vintage of the models that are resampled
            each night.
        stop_at: no call begins after this time.
        is_quiet: no progress is shown.
        retry_failed: permanent failures are missing work too.
        replace_lost: rows that damage lost are missing work too.
    """

    settings: Settings
    warehouse: Path
    warehouse_source: str = ""
    location_options: tuple[str, ...] = ()
    run_id: str
    limit: Size | None = None
    vintage: str = BASE_VINTAGE
    named_models: tuple[str, ...] | None = None
    named_judges: tuple[str, ...] | None = None
    named_tasks: tuple[str, ...] | None = None
    named_trials: tuple[Size, ...] | None = None
    vocabularies: tuple[str, ...] = ()
    compared_models: tuple[Model, ...] = ()
    configured_labels: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    n_neighbour_responses: Size = 100
    succession: Succession | None = None
    night: str | None = None
    stop_at: datetime | None = None
    is_quiet: bool = False
    retry_failed: bool = False
    replace_lost: bool = False
    _lookup: Callable[[], DataRevision] | None = PrivateAttr(default=None)

    @classmethod
    def __get_pydantic_json_schema__(
        cls,
        _: CoreSchema,
        __: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        """Return a plain schema: Prefect needs one for each flow with a job, and no job is created
        from JSON.

        This saves a second in total.
        """
        return {"type": "object"}

    def looking_up(self, find: Callable[[], DataRevision]) -> Self:
        """Return a copy that looks up the revision of its data set by a function."""
        find_once = cache(find)
        one_at_a_time = Lock()

        def lookup() -> DataRevision:
            # `cache` alone would call `find` once in each thread before the first result.
            with one_at_a_time:
                return find_once()

        job = self.model_copy()
        job._lookup = lookup
        return job

    @property
    def hidden_judges(self) -> frozenset[str]:
        """The labels of judges without boards (`has_board: false`) that are not named either."""
        boardless = {judge.label for judge in self.settings.judges if not judge.has_board}
        return frozenset(boardless.difference(self.named_judges or ()))

    def with_settings(self, **changed: Any) -> Self:
        """Return a copy with these settings changed."""
        return self.model_copy(update={"settings": self.settings.model_copy(update=changed)})

    def on_splits(self, splits: tuple[str, ...]) -> Self:
        """Return a copy that shows figures of these splits only; of all stored ones if there are
        none.

        Work is still planned on the configured splits, which are `data.splits`.
        """
        return self.with_settings(
            dataset=self.settings.dataset.model_copy(update={"splits": splits})
        )

    @property
    def data(self) -> DataRevision:
        """The revision of the data set.

        Raises:
            UsageError: the configuration names no readable data set.
            PipelineError: it cannot be read.
        """
        assert self._lookup is not None, "a job needs `looking_up`"
        return self._lookup()

    @property
    def benchmark(self) -> str:
        """The name of the benchmark."""
        return self.settings.benchmark

    @property
    def key(self) -> dict[str, str]:
        """The columns that every row about the job's data set has."""
        return {"benchmark": self.benchmark, "dataset_revision": self.data.revision}

    @property
    def report_folder(self) -> Path:
        """The folder of all reports; each benchmark has its own folder in it."""
        return self.settings.report.folder or self.warehouse / "report"

    @property
    def report_index(self) -> Path:
        """The first page of the benchmark's report."""
        return self.report_folder / self.benchmark / "index.html"

    @property
    def report_url(self) -> str | None:
        """The address of that page, if the report folder is served."""
        url = self.settings.report.url
        return None if url is None else f"{url.rstrip('/')}/{self.benchmark}/index.html"

    def vintage_of(self, model: Model) -> str:
        """Return the vintage of a model in this run."""
        if self.night is not None and model.resample == "nightly":
            return self.night
        return self.vintage

    def vintage_named(self, label: str) -> str:
        """Return the vintage of the model with a label in this run.

        For a label that is not configured it is `vintage`.
        """
        for model in self.settings.models:
            if model.label == label:
                return self.vintage_of(model)
        return self.vintage

    @property
    def trials(self) -> tuple[int, ...]:
        """The wanted trials."""
        return self.named_trials or tuple(range(1, self.settings.trials + 1))

    @property
    def vintages(self) -> list[str]:
        """All vintages of the run, each once: that of the job, then those of models."""
        return list(dict.fromkeys((self.vintage, *map(self.vintage_of, self.settings.models))))
