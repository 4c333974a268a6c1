"""Tests of what Prefect records."""
