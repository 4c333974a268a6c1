"""Tests of the report on localhost."""
