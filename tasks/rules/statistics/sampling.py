"""Random samples whose members are drawn with known probabilities, so that an estimate can weight by one over them.

Every unit has a random number of its own, a hash of the seed and the unit's key, and of each stratum the units with
the smallest numbers are drawn: a simple random sample without replacement (permanent random numbers; Ohlsson,
"Coordination of Samples Using Permanent Random Numbers", 1995). A unit of a stratum with n of N drawn has the
probability n / N (Cochran, "Sampling Techniques", 1977, sections 2.2 and 5.2).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasks.rules.identity import digest


class Drawn(NamedTuple):
    """A unit of a sample: its place in the population, its stratum, and the probability with which it is drawn."""

    place: int
    stratum: str
    probability: float


def stratified_sample(keys: Sequence[str], strata: Sequence[str], n_wanted: int, seed: int) -> list[Drawn]:
    """A sample of `n_wanted` units, or all if there are fewer, as evenly from the strata as their sizes allow.

    Args:
        keys: what identifies each unit of the population; no two are the same.
        strata: the stratum of each unit; one and the same for a simple random sample.
        n_wanted: at least the number of strata, so that no unit has the probability 0.
        seed: another one draws another sample.

    Returns:
        The units drawn, in the order of the population.

    Raises:
        ValueError: fewer units are wanted than there are strata, or a key stands twice.
    """
    if len(set(keys)) < len(keys):
        raise ValueError("a key stands twice")
    members: dict[str, list[int]] = defaultdict(list)
    for place, stratum in enumerate(strata):
        members[stratum].append(place)
    taken = even_allocation({stratum: len(places) for stratum, places in members.items()}, n_wanted)
    drawn = [
        Drawn(place, stratum, taken[stratum] / len(places))
        for stratum, places in members.items()
        for place in sorted(places, key=lambda place: digest("sample", seed, keys[place]))[: taken[stratum]]
    ]
    return sorted(drawn)


def even_allocation(sizes: Mapping[str, int], n_wanted: int) -> dict[str, int]:
    """How many units to draw from each stratum: the same number, or all units of those that have fewer.

    What cannot be divided evenly goes to the largest strata, one unit each.

    Raises:
        ValueError: fewer units are wanted than there are strata.
    """
    if n_wanted < len(sizes):
        raise ValueError(f"{n_wanted} units from {len(sizes)} strata")
    taken: dict[str, int] = {}
    left = min(n_wanted, sum(sizes.values()))
    # The smallest first: what one cannot give is shared by the larger ones.
    ordered = sorted(sizes, key=lambda stratum: (sizes[stratum], stratum))
    for number, stratum in enumerate(ordered):
        taken[stratum] = min(sizes[stratum], left // (len(ordered) - number))
        left -= taken[stratum]
    return taken
