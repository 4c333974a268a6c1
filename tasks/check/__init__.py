"""The checks after each stage."""

from tasks.check.check import check

__all__ = ["check"]
