"""Parquet parts: immutable files, and the manifest that lists merged ones."""
