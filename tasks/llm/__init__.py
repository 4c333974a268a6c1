"""The only folder that calls models."""
