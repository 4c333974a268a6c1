"""The one way by which the logs of all harnesses come in: rows made of them, stored as two tables, and compared."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.dataset import open_regular
from tasks.imports.criteria import Criteria
from tasks.imports.files import ImportRefused, refuse_stored_nothing
from tasks.imports.responses import stored_responses
from tasks.imports.results.comparing import comparison
from tasks.imports.results.formats.known import AUTO, format_of
from tasks.imports.results.labels import Labels
from tasks.imports.results.making import Made, made_of
from tasks.imports.results.matching import Tasks
from tasks.imports.results.sources import Source
from tasks.imports.results.storing import notes_on, stored
from tasks.imports.verdicts import stored_verdicts
from tasks.rules.errors import UsageError
from tasks.rules.text.characters import one_line
from tasks.run.writing import StageReport
from warehouse import Warehouse


def refuse_no_log(job: Job, files: Iterable[Path]) -> None:
    """Refuse what cannot be a log, before anything is stored and before a warehouse is made for it.

    Raises:
        UsageError: there is nothing of a name.
        ImportRefused: nothing was ever ingested.
        NotInside: one is a pipe or a device.
        TooLarge: one is larger than what is read.
        OSError: a file cannot be read.
    """
    for file in files:
        if not file.exists():
            raise UsageError(f"{file}: no such file; check the path")
        if not file.is_dir():
            open_regular(file).close()
    refuse_stored_nothing(job)


def import_results(
    job: Job, files: Sequence[Path], *, format_name: str = AUTO, model: str | None = None, judge: str | None = None,
    skip_unknown: bool = False,
) -> list[StageReport]:  # fmt: skip
    """Bring in answers and verdicts of the logs of other harnesses, and compare their means with those of the rows.

    `model` and `judge` are labels instead of those in the logs; `{model}` and `{judge}` in them stand for these. Every
    log is looked at whole before the first row is stored. With `skip_unknown` answers and decisions on what the data
    set does not have are left out.

    Raises:
        ImportRefused: something in a log does not fit the data set, or something else is stored in its place.
        UsageError: a file is in no known format, or a label is missing or cannot be one of several models.
    """
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    key = {"benchmark": benchmark.name, "dataset_revision": data.revision}
    with Warehouse(job.warehouse).reader() as reader:
        tasks, criteria = Tasks(reader, key), Criteria(reader, key)
        responses, verdicts = stored_responses(reader), stored_verdicts(reader)
    if not tasks:
        raise ImportRefused(f"revision {data.revision[:12]} of {data.name} is not ingested; run `prbench ingest` first")
    made: list[Made] = []
    for source in map(Source, files):
        try:
            log = format_of(source, format_name).read(source)
        except ValueError as error:
            raise ImportRefused(f"{source.path}: cannot be read ({one_line(str(error))}); correct it") from error
        labels = Labels(source.path, log, model, judge)
        each = made_of(job, key, source.batch_with(model, judge), log, labels, tasks, criteria)
        each.refuse_unfit(source.path, skip_unknown=skip_unknown)
        each.take_places(responses, verdicts)
        made.append(each)
    reports = [stored(job, each) for each in made]
    # What was brought in is one line; what one should know about it, and each mean, are others.
    return [
        line
        for report, each in zip(reports, made, strict=True)
        for line in (report, *(StageReport(report.stage, notes=[note]) for note in _said(job, benchmark, each)))
    ]


def _said(job: Job, benchmark: Benchmark, made: Made) -> list[str]:
    return [*notes_on(made), *comparison(job, benchmark, made)]
