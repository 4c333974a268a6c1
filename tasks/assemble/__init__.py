"""The stage that assembles conversations."""
