"""Certify: figures that others can recheck, in one file without texts."""

from tasks.certify.certifying import Certificate, certify
from tasks.certify.comparing import Difference
from tasks.certify.verifying import Verification, verify

__all__ = ["Certificate", "Difference", "Verification", "certify", "verify"]
