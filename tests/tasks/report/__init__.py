"""Tests of the report, and the made-up warehouse for them and for screenshots."""
