"""Rows that were stored before an address of the environment was part of their identity."""

from collections.abc import Iterator
from typing import NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.config.models import Judge
from tasks.llm.request import Target
from tasks.rules.text.numbers import counted
from tasks.run.judge_configs import configs_of, judge_target, target_of
from warehouse import Warehouse

_ROWS = {"responses": ("model", "model_config_hash"), "verdicts": ("judge", "judge_config_hash")}
"""The table of rows -> its columns with the label and the configuration hash of the called model."""


class ChangedIdentity(NamedTuple):
    """A model or judge whose configuration hash contains addresses of the environment, and its hash without them.

    `table` is that of its rows.
    """

    table: str
    label: str
    targets: tuple[Target, ...]
    earlier_hash: str
    config_hash: str

    @property
    def addresses(self) -> dict[str, str]:
        """The addresses from the environment, and the variables that they are from."""
        return {target.api_base or "": target.address_variable for target in self.targets if target.address_variable}


def changed_identities(job: Job) -> Iterator[ChangedIdentity]:
    """Yield the configured models and judges whose address comes from the environment."""
    for model in job.settings.models:
        target = target_of(model)
        if not model.is_imported and target.address_variable is not None:
            earlier_hash = target_of(model, reads_address=False).config_hash
            yield ChangedIdentity("responses", model.label, (target,), earlier_hash, target.config_hash)
    benchmark = load_benchmark(job.settings.benchmark)
    for judge in job.settings.judges:
        earlier, now = (configs_of(judge, benchmark, reads_address=reads)[0] for reads in (False, True))
        if earlier.judge_config_hash != now.judge_config_hash:
            targets = tuple(judge_target(member) for member in _members(judge))
            yield ChangedIdentity("verdicts", judge.label, targets, earlier.judge_config_hash, now.judge_config_hash)


def _members(judge: Judge) -> tuple[Judge, ...]:
    return judge.cascade.members if judge.cascade else (judge,)


def lines_on_unadopted(job: Job) -> list[str]:
    """Return a line for each address of the environment: how many stored rows lack it and are not used.

    Nothing is read unless the environment has an address of a configured model.
    """
    identities = list(changed_identities(job))
    warehouse = Warehouse(job.warehouse)
    if not identities or not warehouse.database.exists():
        return []
    variables = {address: name for identity in identities for address, name in identity.addresses.items()}
    lines = []
    with warehouse.reader() as reader:
        for address, name in variables.items():
            n_rows = dict.fromkeys(_ROWS, 0)
            for identity in identities:
                label, config_hash = _ROWS[identity.table]
                if address in identity.addresses:
                    is_row = {label: identity.label, config_hash: identity.earlier_hash}
                    n_rows[identity.table] += reader.select(identity.table, "count(*) as n", **is_row)[0]["n"]
            if any(n_rows.values()):
                rows = " and ".join(counted(n, table.removesuffix("s")) for table, n in n_rows.items() if n)
                command = f"`prbench adopt --api-base {address}`"
                lines.append(
                    f"{address} (from {name}): {rows} stored before this address was part of their identity are not "
                    f"used; if they came from there, {command} takes them over without a call"
                )
    return lines
