"""Certify: figures that others can recheck, in one file without texts."""

from tasks.certify.certifying import certify
from tasks.certify.verifying import Difference, Verification, verify

__all__ = ["Difference", "Verification", "certify", "verify"]
