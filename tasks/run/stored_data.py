"""The data of a command that only reads: the configured revision, or else the only one that is
stored.
"""

from collections.abc import Mapping, Sequence

from tasks.config.job import DataRevision, Job
from tasks.console import notice
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.characters import hint_on
from warehouse import Reader, Row, Warehouse

_SHOWN = 12
"""The number of characters that identify a revision."""


def on_stored_data(job: Job, names_by_option: Mapping[str, Sequence[str]]) -> Job:
    """Return the job on stored data: as configured, or on the only stored revision, with a notice.

    `names_by_option` are the names that the command line gives. On another revision than the
    configured one, the job has the splits that the command line names, or all. Where nothing is
    published yet, the job stays as it is.

    Raises:
        UsageError: something else is stored, and it is not clear which is meant; or a given name is
            neither stored nor configured.
    """
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return job
    with warehouse.reader() as reader:
        splits = tuple(names_by_option.get("split", ()))
        revisions = reader.query("queries/run/stored_revisions")
        job_on_stored = _on_stored_revision(job, revisions, splits)
        _refuse_unknown(job_on_stored, reader, names_by_option)
    return job_on_stored


def _on_stored_revision(job: Job, revisions: list[Row], splits: tuple[str, ...]) -> Job:
    """Return the job on a stored revision; one that was not configured is named in a notice."""
    benchmark = job.benchmark
    folder = job.warehouse
    candidates = [row for row in revisions if row["benchmark"] == benchmark]
    try:
        configured = job.data
    except PipelineError as error:
        if not revisions:
            raise
        lacking = f"{folder} has nothing of the configured data set ({error})"
    else:
        if any(row["dataset_revision"] == configured.revision for row in candidates):
            return job
        lacking = (
            f"{folder} has nothing of {configured.name} (revision {configured.revision[:_SHOWN]})"
        )
    if len(candidates) == 1:
        (row,) = candidates
        notice(f"{lacking}; showing the only revision of {benchmark} there, {_in_words(row)}")
        data = DataRevision(
            name=str(folder),
            revision=row["dataset_revision"],
            splits=splits or tuple(row["splits"]),
        )
        return job.on_splits(splits).looking_up(lambda: data)
    if revisions:
        content = "; ".join(f"{row['benchmark']} {_in_words(row)}" for row in revisions)
        raise UsageError(
            f"{lacking}; it has {content}: configure one of these data sets, or choose another"
            " --benchmark"
        )
    return job


def stored_in_words(job: Job) -> str:
    """Return a sentence on the stored data of a job's benchmark, with the revision that the job is
    about.
    """
    benchmark = job.benchmark
    with Warehouse(job.warehouse).reader() as reader:
        revisions = reader.query("queries/run/stored_revisions")
    content = "; ".join(_in_words(row) for row in revisions if row["benchmark"] == benchmark)
    return (
        f"This is about revision {job.data.revision[:_SHOWN]}; stored of {benchmark}:"
        f" {content or 'nothing'}."
    )


def _in_words(row: Row) -> str:
    """Return a stored revision in words, with its numbers of rows."""
    sizes = ", ".join(f"{row[f'n_{name}']:,} {name}" for name in ("tasks", "responses", "verdicts"))
    return f"{row['dataset_revision'][:_SHOWN]} ({', '.join(row['splits'])}: {sizes})"


def _refuse_unknown(job: Job, reader: Reader, names_by_option: Mapping[str, Sequence[str]]) -> None:
    """Refuse a name that is neither configured nor stored in the revision."""
    for option, names in names_by_option.items():
        allowed = list(job.configured_labels.get(option, ()))
        if set(names) - set(allowed):
            rows = reader.select(_RELATIONS[option], f"distinct {option}", **job.key)
            allowed += [row[option] for row in rows]
        _refuse_unlisted(option, names, allowed)


def _refuse_unlisted(option: str, names: Sequence[str], allowed: Sequence[str]) -> None:
    for name in names:
        if name not in allowed:
            raise UsageError(f"--{option} {name}: not found{hint_on(name, allowed)}")


_RELATIONS = {
    "split": "split_members",
    "model": "responses",
    "vintage": "responses",
    "judge": "intermediate.model_runs",
}
"""Option -> the relation with a column of its name, which holds the stored names."""


def refuse_unknown_graders(job: Job, **names_by_option: Sequence[str]) -> None:
    """Refuse a name that no stored grader (judge, person or majority) has.

    Where no grader is stored, nothing is refused: the command then says that nothing is stored.

    Raises:
        UsageError: one is unknown.
    """
    with Warehouse(job.warehouse).reader() as reader:
        graders = reader.select("graders", "distinct grader", benchmark=job.benchmark)
    if graders:
        for option, names in names_by_option.items():
            _refuse_unlisted(option, names, [row["grader"] for row in graders])
