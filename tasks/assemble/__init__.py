"""The stage that assembles conversations."""

from tasks.assemble.assemble import assemble, complete_conversations, turns_to_assemble

__all__ = ["assemble", "complete_conversations", "turns_to_assemble"]
