"""Runs over the sample, killed at random instants until they have come to their end; then book and tables are compared.

A run is forked from one process that has imported everything.
"""
