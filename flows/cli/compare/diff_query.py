"""What `prbench diff` asks of a warehouse, and the answer for machines."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from flows.cli.compare.diff_table import notes_on, sentence
from tasks.benchmarks import load_benchmark
from tasks.compare import KINDS, Answer, Difference, Flip, Flips, Question, flips_of, with_explanations
from tasks.config.settings import Job
from tasks.dataset.source import open_source
from tasks.rules.errors import UsageError
from warehouse import Reader


def question_of(
    job: Job, names: Sequence[str], kind: str | None, *, score: str | None, is_hard: bool, vintage: str | None
) -> Question:
    """What a job asks.

    Raises:
        UsageError: the benchmark has no such score, or the configured data set is not there.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    scores = {definition.score_name: definition for definition in benchmark.scores}
    chosen = score or benchmark.primary_score.score_name
    if chosen not in scores:
        raise UsageError(f"--score {chosen}: {benchmark.name} has {', '.join(scores)}")
    dataset = job.settings.dataset
    # The splits of what is stored are looked for there: a file's revision is the same whatever splits are chosen.
    located = dataset if dataset.source == "hub" else dataset.model_copy(update={"splits": ()})
    return Question(
        benchmark=benchmark.name,
        names=tuple(names),
        kind=next((known for known in KINDS if known == kind), None),
        revision=open_source(located, benchmark).revision,
        splits=dataset.splits,
        is_hard=is_hard,
        score=chosen,
        clips_mean=scores[chosen].clips_mean,
        models=job.named_models or (),
        judges=job.named_judges or (),
        vintage=vintage,
    )


def as_json(reader: Reader, answer: Answer, n_flips: int) -> dict[str, Any]:
    """Everything, for machines."""
    taken_apart = flips_of(reader, answer.score, answer.differences)
    return {
        "of": answer.kind,
        "score": answer.score,
        "comparisons": [
            _comparison(reader, answer, difference, flips, n_flips)
            for difference, flips in zip(answer.differences, taken_apart, strict=True)
        ],
        "notes": list(answer.notes),
    }


def _comparison(reader: Reader, answer: Answer, difference: Difference, flips: Flips, n_flips: int) -> dict[str, Any]:
    pair = difference.pair
    sides = {
        place: {"name": side.name} | {k: v for k, v in asdict(side.series).items() if k != "model_run_id"}
        for place, side in (("first", pair.first), ("second", pair.second))
    }
    shown = with_explanations(reader, pair, flips.flips[:n_flips])
    return {
        **sides,
        "split": difference.split,
        "first_mean": difference.first_mean,
        "second_mean": difference.second_mean,
        "n_tasks_wanted": difference.n_wanted,
        **asdict(difference.paired),
        "p_adjusted": difference.p_adjusted,
        "is_significant": difference.is_significant,
        "sentence": sentence(answer, difference),
        "n_criteria": flips.n_criteria,
        "n_compared": flips.n_compared,
        "n_undecided": flips.n_undecided,
        "n_left_out": flips.n_left_out,
        "n_in_one": flips.n_in_one,
        "n_flips": len(flips.flips),
        "explained": flips.explained,
        "categories": [asdict(category) for category in flips.categories],
        "tasks": [asdict(task) for task in flips.tasks],
        "flips": [_flip(flip) for flip in shown],
        "notes": [*difference.notes, *notes_on(flips, difference)],
    }


def _flip(flip: Flip) -> dict[str, Any]:
    record = {name: value for name, value in asdict(flip).items() if name not in {"explanations", "first_criterion_id"}}
    first, second = flip.explanations
    return record | {"first_explanations": list(first), "second_explanations": list(second)}
