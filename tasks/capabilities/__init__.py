"""Capabilities: what each criterion asks of a model, in a tree, and where in it a model is weak."""

from tasks.capabilities.names import NAMES, ROUNDS, naming_of
from tasks.capabilities.phrases import EMBEDDINGS, PHRASES, refuse_unready
from tasks.capabilities.scores import measure
from tasks.capabilities.tree import Tree, build_tree
from tasks.capabilities.trees import grow, write_names

__all__ = [
    "EMBEDDINGS",
    "NAMES",
    "PHRASES",
    "ROUNDS",
    "Tree",
    "build_tree",
    "grow",
    "measure",
    "naming_of",
    "refuse_unready",
    "write_names",
]
