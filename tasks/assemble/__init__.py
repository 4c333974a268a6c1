"""The stage that assembles conversations."""

from tasks.assemble.assemble import assemble, turns_to_assemble

__all__ = ["assemble", "turns_to_assemble"]
