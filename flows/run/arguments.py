"""The arguments that narrow the configuration."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Arguments:
    """The arguments of the command line or a deployment that override the configuration; None and () mean not given."""

    config: Path | None = None
    benchmark: str | None = None
    splits: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    trials: int | None = None
    limit: int | None = None
    vintage: str | None = None
    warehouse: Path | None = None
    is_quiet: bool = False
    max_usd: float | None = None
    max_tokens: int | None = None
    night: str | None = None
    stop_at: str | None = None
    tasks: tuple[str, ...] = ()
    trial_numbers: tuple[int, ...] = ()
    vocabularies: tuple[str, ...] = ()
    n_responses: int = 100
    is_unrecorded: bool = False
    retry_failed: bool = False
    replace_lost: bool = False
