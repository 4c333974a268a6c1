"""The checks after each stage."""

from tasks.check.check import check, has_unchecked

__all__ = ["check", "has_unchecked"]
