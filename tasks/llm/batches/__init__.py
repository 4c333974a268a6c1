"""Calls through a provider's batch API."""
