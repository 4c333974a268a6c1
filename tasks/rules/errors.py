"""Errors that a user can cause, each one line: what is wrong, where, and what to do."""


class PipelineError(Exception):
    """A failure that the user sees as one line; the process exits with `exit_code`."""

    exit_code = 1


class UsageError(PipelineError):
    """Wrong usage or configuration: nothing was started."""

    exit_code = 2
