"""What holds for all tests."""

import signal
import threading

from hypothesis import settings

# A law holds or does not; how long an example takes on a shared machine says nothing about it.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C; some tests type it.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
