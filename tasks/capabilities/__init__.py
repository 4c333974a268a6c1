"""Capabilities: what each criterion asks of a model, in a tree, and where in it a model is weak."""

from tasks.capabilities.tree import Tree, build_tree

__all__ = ["Tree", "build_tree"]
