"""Tests of the hub boundary: the real `datasets` library against a local server."""
