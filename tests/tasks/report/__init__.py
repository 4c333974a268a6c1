"""Tests of the report, and the made-up warehouse that they and its screenshots are made from."""
