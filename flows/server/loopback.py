"""Who may talk to a server of this machine: whoever asks for it by name, and no page of another site."""

import re
from collections.abc import Sequence

HOST = "127.0.0.1"
_NAMES = {HOST, "localhost", "[::1]"}
"""What this machine calls itself."""
_PORT = re.compile(r":\d*\Z")


def is_from_here(hosts: Sequence[str], origins: Sequence[str]) -> bool:
    """Whether a request with these headers Host and Origin asks for this machine, and comes from no foreign page.

    A browser sends the page's own address as Origin. A foreign name that leads here (DNS rebinding) has both headers
    agree, so the name itself is looked at.
    """
    if len(hosts) != 1:
        return False
    # A browser leaves out the port 80; a name is the same in capitals, and may end with a dot.
    host = hosts[0].lower()
    is_this_machine = _PORT.sub("", host).removesuffix(".") in _NAMES
    return is_this_machine and all(origin.lower() == f"http://{host}" for origin in origins)
