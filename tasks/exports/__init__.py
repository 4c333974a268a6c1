"""Exports: tables to a folder or store and into another warehouse, publications, sheets for human graders."""
