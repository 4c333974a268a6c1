"""Prefect's server, and serving deployments on it."""
