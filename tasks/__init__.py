"""The stages, and the modules that they use, such as model calls, benchmarks and pure rules.

Importing this package makes sure that requests to this machine (to the embedded model, Prefect's
own server or local endpoints) never go through a proxy of the environment, which could not reach
them.
"""

import os

_LOOPBACK = ("localhost", "127.0.0.1", "0.0.0.0", "::1")


def _bypass_proxy_on_loopback() -> None:
    """Add this machine to the addresses that libraries call without a proxy."""
    if not any(name.lower().endswith("_proxy") and value for name, value in os.environ.items()):
        return
    # Libraries prefer the lowercase name.
    bypassed = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    addresses = [address.strip() for address in bypassed.split(",") if address.strip()]
    addresses += [address for address in _LOOPBACK if address not in addresses]
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(addresses)


_bypass_proxy_on_loopback()
