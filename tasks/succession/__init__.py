"""Succession: what a change of judge would do to scores and ranks, from a sample of verdicts."""
