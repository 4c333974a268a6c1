"""The order in which tasks are evaluated: random, the same for the same seed, and close to proportional everywhere."""

import hashlib
from collections.abc import Mapping


def task_order(strata: Mapping[str, str], seed: str) -> list[str]:
    """Tasks in a random order in which every beginning holds about the same share of each stratum.

    In its stratum a task stands where the hash of seed and task id puts it; the k-th of n tasks of a stratum gets the
    place (k - 1/2) / n among all. So the order depends on nothing but seed, task ids and strata.

    Args:
        strata: task id -> its stratum, such as its field.
        seed: any text.
    """
    of_stratum: dict[str, list[tuple[bytes, str]]] = {}
    for task_id, stratum in strata.items():
        drawn = hashlib.sha256(f"{seed}\x1f{task_id}".encode()).digest()
        of_stratum.setdefault(stratum, []).append((drawn, task_id))
    placed = [
        ((place + 0.5) / len(drawn), stratum, task_id)
        for stratum, drawn in of_stratum.items()
        for place, (_, task_id) in enumerate(sorted(drawn))
    ]
    return [task_id for _, _, task_id in sorted(placed)]


def block_ends(n_tasks: int, block: int) -> list[int]:
    """How many tasks are evaluated after each block; the last block may be smaller."""
    return [*range(block, n_tasks, block), *([n_tasks] if n_tasks else [])]
