"""The stage that assembles conversations."""

from tasks.assemble.assemble import assemble

__all__ = ["assemble"]
