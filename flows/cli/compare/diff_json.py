"""The answer of `prbench diff` for machines."""

from dataclasses import asdict
from typing import Any

from tasks.compare import Answer, Difference, Flip, Flips, flips_of, notes_on, sentence, with_explanations
from warehouse import Reader


def as_json(reader: Reader, answer: Answer, n_flips: int) -> dict[str, Any]:
    """Everything that is known of the differences."""
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
        place: {"name": side.name} | {k: v for k, v in asdict(side.model_run).items() if k != "model_run_id"}
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
