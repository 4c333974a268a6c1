"""When a run stops evaluating: which comparisons it is to settle, and how surely."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tasks.config.models import Strict

EVERY_PAIR: Literal["all"] = "all"
EARLIER_NIGHTS: Literal["earlier_nights"] = "earlier_nights"
_Label = Annotated[str, Field(min_length=1)]


def _of_two(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Pairs of two different labels, each pair once.

    Raises:
        ValueError: a label stands beside itself, or a pair is there twice.
    """
    seen: set[frozenset[str]] = set()
    for pair in pairs:
        if pair[0] == pair[1]:
            raise ValueError(f"[{pair[0]}, {pair[1]}] has the same label twice")
        if frozenset(pair) in seen:
            raise ValueError(f"[{pair[0]}, {pair[1]}] is there twice")
        seen.add(frozenset(pair))
    return pairs


Pairs = Annotated[tuple[Annotated[tuple[_Label, _Label], Field()], ...], Field(min_length=1), AfterValidator(_of_two)]


class Stopping(Strict):
    """Evaluate tasks in random order, block by block, until each comparison is settled.

    `pairs` are the comparisons: `all` pairs of configured models, or the pairs given. `earlier_nights` compares each
    model with `resample: nightly` with its own values of earlier nights, and asks whether it has dropped by more than
    `least_difference`. `alpha` is the chance of any false decision among all comparisons. A smaller difference than
    `least_difference` (in the unit of the score) counts as equal. `block` is the number of tasks between two looks;
    `seed` chooses the order. Scores are the benchmark's main score under the first judge in its first repetition.
    """

    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    least_difference: Annotated[float, Field(gt=0)] = 0.02
    pairs: Literal["all", "earlier_nights"] | Pairs = EVERY_PAIR
    block: Annotated[int, Field(ge=1, strict=True)] = 20
    seed: Annotated[int, Field(ge=0, strict=True)] = 1
