"""A made-up but meaningful warehouse, for the tests of the report and for its screenshots.

Two fields with 24 tasks each, and one task that was refused; four pinned models, two that are
sampled nightly, and one whose responses were imported; two judges and people; one night on an older
revision. With `hostile` every name and text holds an attack.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from flows.nightly import comparisons_with_last_night
from tasks.aggregate import aggregate
from tasks.alerts import sending
from tasks.alerts.findings import Alert, drop_alerts
from tasks.analyses.node_scores import measure
from tasks.assemble import assemble
from tasks.benchmarks.prbench import BENCHMARK
from tasks.cascade import cascade_result, rule_rows
from tasks.config.job import Job, Succession
from tasks.dataset.source import with_revision
from tasks.drift import drift_rows
from tasks.hard_subset.select import select_hard
from tasks.ingest import ingest
from tasks.measures import LABELS, renew
from tasks.rules.identity import BASE_VINTAGE, IMPORTED
from tasks.run.judge_configs import judge_configs, model_hash
from tasks.succession.sample import store_sample
from tests.kit import Rows, written
from tests.tasks.report.synthetic import analyses
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.contenders import (
    CONTENDERS,
    JUDGES,
    NIGHTS,
    OLDER_NIGHT,
    OUTSIDER,
    PEOPLE,
    run_of,
)
from tests.tasks.report.synthetic.data import Names, job_for, write_data
from tests.tasks.report.synthetic.operations import check_rows, control_rows, run_rows
from tests.tasks.report.synthetic.resamples import few_resamples
from tests.tasks.report.synthetic.results import (
    Grader,
    PosedTask,
    Row,
    Sampling,
    response_rows,
    verdict_rows,
)
from warehouse import Warehouse

_PINNED = ""
"""The night of samplings that belong to none."""
_SUCCESSION_VERDICTS = 1_500
"""Enough for an estimate of each model, in half of the tasks too."""
_RESAMPLES = 500
"""Resamples of intervals: a twentieth of the usual number, since time matters here and last digits
do not.
"""


def report_world(folder: Path, hostile: bool = False) -> Job:
    """Build the warehouse in a folder, and return its job; each call gives the same rows except for
    times.
    """
    taint = Taint(hostile)
    everybody = (
        *(contender.label for contender in (*CONTENDERS, OUTSIDER)),
        *JUDGES,
        PEOPLE,
    )
    labels = {name: taint.name(name) for name in everybody}
    names = Names(labels, {night: taint(night) for night in (OLDER_NIGHT, *NIGHTS)})
    job = job_for(folder / "data", folder / "warehouse", names)
    older = job_for(folder / "older", job.warehouse, names)
    _, _, older_tables = _filled(older, names, (OLDER_NIGHT,), taint, step=2)
    # Half of the tasks are enough for several copies of each attack.
    job, posed_tasks, tables = _filled(
        job,
        names,
        (_PINNED, *NIGHTS),
        taint,
        step=2 if hostile else 1,
    )
    tables |= _control(job, names, posed_tasks, tables)
    tables |= {table: rows + tables[table] for table, rows in older_tables.items()}
    written(
        job.warehouse, tables | run_rows(job.settings, names.nights, tables, taint)
    )
    annotations = analyses.annotation_rows(posed_tasks, job.data.revision, taint)
    written(job.warehouse, {"task_annotations": annotations})
    written(
        job.warehouse, analyses.review_rows(posed_tasks, job.data.revision, taint)
    )
    written(job.warehouse, analyses.tree_rows(posed_tasks, job.data.revision, taint))
    written(
        job.warehouse,
        analyses.label_rows(names.labels[PEOPLE], job.data.revision, tables),
    )
    assemble(job)
    select_hard(job, must_select=False)
    for night in NIGHTS[1:]:
        _alert(job, night, names.nights[night])
    renew(job, [LABELS])
    with few_resamples(_RESAMPLES):
        aggregate(job)
    measure(job)
    with Warehouse(job.warehouse).reader() as reader:
        query = (
            "select * from capability_measures where node_id <> 'node-0' order by judge, model,"
            " node_id limit 2"
        )
        measures = reader.rows(query)
        cascade_parameters = {
            **job.key,
            "splits": [],
            "cheap": names.labels[JUDGES[1]],
            "strong": names.labels[JUDGES[0]],
        }
        cascades = cascade_result(reader, cascade_parameters, None, _RESAMPLES)
        labelled = reader.rows(
            "select measures.* from measures inner join intermediate.debiased_figures using"
            " (figure_id, basis) where measure = 'judge_score' and breakdown = 'all' and"
            " n_labels > 0"
        )
        query = (
            "select * from leaderboard where is_primary and judge_trial = 1 and dataset_revision ="
            " ? order by all"
        )
        board = reader.rows(f"{query} limit 3", [job.data.revision])
    looks = {
        "cascade_rules": rule_rows(cascade_parameters, cascades)
    } | analyses.look_rows(board)
    written(job.warehouse, analyses.weakness_rows(measures) | looks)
    written(job.warehouse, analyses.debiased_rows(labelled))
    succession = Succession(
        old_judge=names.labels[JUDGES[1]],
        new_judge=names.labels[JUDGES[0]],
        n_verdicts=_SUCCESSION_VERDICTS,
    )
    store_sample(job.model_copy(update={"succession": succession}))
    return job


def _filled(
    job: Job,
    names: Names,
    nights: Sequence[str],
    taint: Taint,
    step: int = 1,
) -> tuple[Job, list[PosedTask], Rows]:
    """Write and ingest a job's data set with every `step`-th task; return the job, its tasks, and
    rows of nights.
    """
    *posed_tasks, refused = write_data(
        Path(job.settings.dataset.source),
        taint,
        step,
    )
    job = with_revision(job)
    revision = job.data.revision
    tables = {"responses": [], "verdicts": []}
    for sampling in _samplings(job, names, nights):
        responded = list(response_rows(sampling, posed_tasks, revision, taint))
        tables["responses"] += [response for _, response in responded]
        for grader, graded_responses in _graded(job, names, sampling, responded):
            tables["verdicts"] += verdict_rows(
                grader,
                sampling,
                graded_responses,
                taint,
            )
    # The rows of the checks are written before the tasks, so that tasks are admitted as soon as
    # they are ingested.
    tasks = [posed.task for posed in (*posed_tasks, refused)]
    written(job.warehouse, check_rows(revision, tasks, refused.task.task_id, tables))
    ingest(job)
    return job, posed_tasks, tables


def _samplings(job: Job, names: Names, nights: Sequence[str]) -> Iterator[Sampling]:
    hashes = {model.label: model_hash(model) for model in job.settings.models}
    for night in nights:
        vintage = names.nights.get(night, BASE_VINTAGE)
        for contender in CONTENDERS:
            if contender.is_nightly == (night != _PINNED):
                label = names.labels[contender.label]
                yield Sampling(contender, label, hashes[label], vintage, night)
        if night == _PINNED:
            yield Sampling(
                OUTSIDER,
                names.labels[OUTSIDER.label],
                IMPORTED,
                vintage,
                night,
            )


def _graded(
    job: Job,
    names: Names,
    sampling: Sampling,
    responded: list[tuple[PosedTask, Row]],
) -> Iterator[tuple[Grader, list[tuple[PosedTask, Row]]]]:
    """Yield the graders of a sampling, each with the responses that it graded: only the first judge
    graded all.
    """
    strict, mild = map(
        Grader.of_judge_config,
        JUDGES,
        judge_configs(job, BENCHMARK),
    )
    first_trials = [pair for pair in responded if pair[1]["trial"] == 1]
    yield strict, responded
    if sampling.night in (_PINNED, *NIGHTS[3:]):
        yield mild, [pair for pair in responded if pair[0].number % 3 == 0]
    if sampling.contender in (CONTENDERS[0], CONTENDERS[2]):
        repetition = Grader(
            strict.name,
            {**strict.columns, "judge_trial": 2},
            strict.usd_per_mtok,
        )
        yield repetition, [pair for pair in first_trials if pair[0].number % 4 == 1]
    if sampling.contender in (CONTENDERS[0], CONTENDERS[1], OUTSIDER):
        columns = {
            "judge": names.labels[PEOPLE],
            "judge_config_hash": IMPORTED,
            "template_hash": IMPORTED,
            "grading": "binary",
            "judge_trial": 1,
        }
        people = Grader(PEOPLE, columns)
        yield people, [pair for pair in first_trials if pair[0].number % 5 == 0]


def _control(
    job: Job,
    names: Names,
    posed_tasks: Sequence[PosedTask],
    tables: Rows,
) -> Rows:
    """The first judge's control set, chosen from its verdicts on pinned responses, and its
    nights.
    """
    columns = judge_configs(job, BENCHMARK)[0].columns | {"vintage": BASE_VINTAGE}
    judge_verdicts = []
    for verdict in tables["verdicts"]:
        if columns.items() <= verdict.items():
            judge_verdicts.append(verdict)
    conversations = {}
    for posed in posed_tasks:
        conversations[posed.task.task_id] = posed.task.conversation_id
    nights = {night: names.nights[night] for night in NIGHTS}
    return control_rows(judge_verdicts, conversations, nights)


_DRIFT_LINE = (
    "{judge}: agrees with its first verdicts on {agreement:.1%} of {n_decided}, below the limit"
    " {lower_limit:.1%}; it calls {met_share:.1%} of them met, at first {first_met_share:.1%}; a"
    " change in scores may be the judge's"
)


def _alert(job: Job, night: str, label: str):
    """Store the alerts of a night, as a night does."""
    night_job = job.model_copy(update={"night": label, "run_id": run_of(night)})
    judges = drift_rows(night_job)
    alerts = [
        Alert("judge_drift", judge["judge"], _DRIFT_LINE.format(**judge))
        for judge in judges
    ]
    alerts += drop_alerts(
        comparisons_with_last_night(night_job),
        least_drop=0.01,
        alpha=0.05,
        drifted_judges={judge["judge"]: judge["judge"] for judge in judges},
    )
    sending.store_alerts(night_job, alerts)
