"""Exports: tables for other warehouses, publications, files for other tools, and sheets for
people.
"""
