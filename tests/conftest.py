"""What holds for all tests."""

from hypothesis import settings

# A law holds or does not; how long an example takes on a shared machine says nothing about it.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")
