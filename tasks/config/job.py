"""The job of one run: the configuration, and the run's own choices."""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

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


class Job(Strict):
    """One run: the configuration, narrowed by the command line, on one warehouse.

    `models` and `judges` of the settings are already the chosen ones; `named_models` is None unless
    models were named, and may also have labels of imported responses; `named_judges` likewise.
    `named_tasks` and `named_trials` narrow the wanted work further; `n_responses` is the size of
    the sample for `prbench neighbours`; `vocabularies` are the kinds of labels for annotation
    (none: all). `compared_models` are all configured models if `stopping` compares them: names
    narrow the evaluated models, not the compared ones. `configured_labels` are those of all models
    and judges, for hints on mistyped names. `night` is the label of the run's night, and the
    vintage of every model that is resampled each night; all others have `vintage`. No call begins
    after `stop_at`. With `retry_failed` permanent failures are missing work too, with
    `replace_lost` also rows that damage lost. `location` are the options of a command that name the
    same configuration, data and benchmark. `warehouse_source` describes the source of the
    warehouse's folder, for people. The revision of the data set is looked up when it is first
    needed, once for the job and all its copies.
    """

    settings: Settings
    warehouse: Path
    warehouse_source: str = ""
    location: tuple[str, ...] = ()
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
    n_responses: Size = 100
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

        def looked_up() -> DataRevision:
            # `cache` alone would call `find` once in each thread before the first result.
            with one_at_a_time:
                return find_once()

        job = self.model_copy()
        job._lookup = looked_up
        return job

    def with_settings(self, **changed: Any) -> Self:
        """Return a copy with these settings changed."""
        return self.model_copy(update={"settings": self.settings.model_copy(update=changed)})

    def on_splits(self, splits: tuple[str, ...]) -> Self:
        """Return a copy on these splits; none: all stored ones, as the configured ones are only
        those to evaluate.
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
    def key(self) -> dict[str, str]:
        """The columns that every row about the job's data set has."""
        return {"benchmark": self.settings.benchmark, "dataset_revision": self.data.revision}

    @property
    def report_folder(self) -> Path:
        """The folder of all reports; each benchmark has its own folder in it."""
        return self.settings.report.folder or self.warehouse / "report"

    @property
    def report_index(self) -> Path:
        """The first page of the benchmark's report."""
        return self.report_folder / self.settings.benchmark / "index.html"

    @property
    def report_url(self) -> str | None:
        """The address of that page, if the report folder is served."""
        url = self.settings.report.url
        return None if url is None else f"{url.rstrip('/')}/{self.settings.benchmark}/index.html"

    def vintage_of(self, model: Model) -> str:
        """Return the vintage of a model in this run."""
        return (
            self.night if self.night is not None and model.resample == "nightly" else self.vintage
        )

    def vintage_named(self, label: str) -> str:
        """Return the vintage of the model with a label in this run.

        For a label that is not configured it is `vintage`.
        """
        return next(
            (self.vintage_of(model) for model in self.settings.models if model.label == label),
            self.vintage,
        )

    @property
    def trials(self) -> tuple[int, ...]:
        """The wanted trials."""
        return self.named_trials or tuple(range(1, self.settings.trials + 1))

    @property
    def vintages(self) -> list[str]:
        """All vintages of the run."""
        return list(dict.fromkeys((self.vintage, *map(self.vintage_of, self.settings.models))))
