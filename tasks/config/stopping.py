"""When a run stops evaluating: which comparisons it is to settle, and the error that it allows."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from tasks.config.models import Strict

EVERY_PAIR: Literal["all"] = "all"
EARLIER_NIGHTS: Literal["earlier_nights"] = "earlier_nights"
Pairs = tuple[tuple[str, str], ...]


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

    @field_validator("pairs")
    @classmethod
    def _of_two(cls, pairs: str | Pairs) -> str | Pairs:
        """Pairs of two different labels, each pair once."""
        if isinstance(pairs, str):
            return pairs
        if not pairs:
            raise ValueError("names no pair")
        seen: set[frozenset[str]] = set()
        for first, second in pairs:
            if first == second:
                raise ValueError(f"[{first}, {second}] has the same label twice")
            if frozenset({first, second}) in seen:
                raise ValueError(f"[{first}, {second}] is there twice")
            seen.add(frozenset({first, second}))
        return pairs
