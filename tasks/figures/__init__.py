"""The declarations of all figures, their scope, and their output as text."""
