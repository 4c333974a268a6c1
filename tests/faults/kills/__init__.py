"""Runs over the sample, killed at random instants and started again until they finish; book and
tables are compared.

Each run is forked from one process that has imported everything.
"""
