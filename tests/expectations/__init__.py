"""Tests of the suites and their pages."""
