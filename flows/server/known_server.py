"""The Prefect server that records runs: the one that Prefect's settings name, if it answers."""

import os

from flows.server.own_server import answers, named_server, place_of
from flows.server.settings_files import may_name_a_server
from tasks.console import notice


def may_know_a_server() -> bool:
    """Whether a server could be named, as far as one can know without importing Prefect, which takes 3 s."""
    return bool(os.environ.get("PREFECT_API_URL")) or may_name_a_server()


def known_server(what_fails: str = "this run is not recorded there") -> str | None:
    """Where the named server is, without a password; None if none is named.

    None too if it does not answer; a notice then says that, and what fails for that reason.
    """
    named = named_server()
    if named is None:
        return None
    where = place_of(named)
    if answers(named):
        return where
    notice(f"Prefect's server at {where} does not answer; {what_fails}")
    return None
