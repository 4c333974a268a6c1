"""The arguments that narrow the configuration."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.config.job import Succession


@dataclass(frozen=True)
class Arguments:
    """The arguments of the command line or a deployment that override the configuration.

    None and () mean not given.

    One with the name of a field of `Job` becomes that field; `warehouse` and `stop_at` are
    converted first.
    """

    config: Path | str | None = None
    benchmark: str | None = None
    splits: tuple[str, ...] = ()
    named_models: tuple[str, ...] = ()
    named_judges: tuple[str, ...] = ()
    trials: int | None = None
    limit: int | None = None
    vintage: str | None = None
    warehouse: Path | str | None = None
    is_quiet: bool = False
    max_usd: float | None = None
    max_tokens: int | None = None
    night: str | None = None
    stop_at: str | None = None
    named_tasks: tuple[str, ...] = ()
    named_trials: tuple[int, ...] = ()
    vocabularies: tuple[str, ...] = ()
    n_neighbour_responses: int = 100
    succession: "Succession | None" = None
    is_unrecorded: bool = False
    retry_failed: bool = False
    replace_lost: bool = False
