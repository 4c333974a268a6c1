"""Rows that were stored before an address of the environment was part of their identity.

They are not used until `prbench adopt` gives them the identity with the address
(`tasks/maintain/adoption.py`).
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.llm.request import Target
from tasks.rules.text.numbers import counted
from tasks.run.judge_configs import configs_of, judge_target, target_of
from warehouse import Reader, Warehouse


class ChangedIdentity(NamedTuple):
    """A model or judge whose configuration hash contains addresses of the environment, and its hash
    without them.

    `noun` is what its rows are: response or verdict.
    """

    noun: str
    label: str
    targets: tuple[Target, ...]
    earlier_hash: str
    config_hash: str

    @property
    def addresses(self) -> dict[str, str]:
        """Address from the environment -> the name of the variable that holds it."""
        return {
            target.api_base or "": target.address_variable
            for target in self.targets
            if target.address_variable
        }


def changed_identities(job: Job) -> Iterator[ChangedIdentity]:
    """Yield the configured models and judges whose address comes from the environment."""
    for model in job.settings.models:
        target = target_of(model)
        earlier_hash = target_of(model, reads_address=False).config_hash
        if earlier_hash != target.config_hash and not model.is_imported:
            yield ChangedIdentity(
                noun="response",
                label=model.label,
                targets=(target,),
                earlier_hash=earlier_hash,
                config_hash=target.config_hash,
            )
    benchmark = load_benchmark(job.benchmark)
    for judge in job.settings.judges:
        # All judge trials have the same hash.
        earlier_hash = configs_of(judge, benchmark, reads_address=False)[0].judge_config_hash
        config_hash = configs_of(judge, benchmark)[0].judge_config_hash
        if earlier_hash != config_hash:
            yield ChangedIdentity(
                noun="verdict",
                label=judge.label,
                targets=tuple(judge_target(member) for member in judge.members),
                earlier_hash=earlier_hash,
                config_hash=config_hash,
            )


def lines_on_unadopted(job: Job) -> list[str]:
    """Return a line for each address of the environment: how many rows were stored without it and
    are not used.

    Rows that were made again with the address do not count. Nothing is read unless the environment
    has an address of a configured model.
    """
    identities = list(changed_identities(job))
    warehouse = Warehouse(job.warehouse)
    if not identities or not warehouse.database.exists():
        return []
    variables_by_address: dict[str, str] = {}
    for identity in identities:
        variables_by_address |= identity.addresses
    lines = []
    with warehouse.reader() as reader:
        for address, variable in variables_by_address.items():
            n_rows = Counter[str]()
            for identity in identities:
                if address in identity.addresses:
                    n_rows[identity.noun] += _n_unadopted(reader, identity)
            rows = " and ".join(counted(n, noun) for noun, n in n_rows.items() if n)
            if rows:
                command = f"`prbench adopt --api-base {address}`"
                lines.append(
                    f"{address} (from {variable}): {rows} stored before this address was part of"
                    f" their identity are not used; if they came from there, {command} takes them"
                    " over without a call"
                )
    return lines


def _n_unadopted(reader: Reader, identity: ChangedIdentity) -> int:
    parameters = {
        "label": identity.label,
        "earlier_hash": identity.earlier_hash,
        "config_hash": identity.config_hash,
    }
    (row,) = reader.query(f"queries/run/unadopted_{identity.noun}s", parameters)
    return int(row["n"])
