"""Cascades: a cheap judge with a strong one behind it; when to escalate, and what that costs and changes."""
