"""Limits on calls: admission, tokens per minute, budget, endpoint health."""
