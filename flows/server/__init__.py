"""The Prefect server of the project."""
