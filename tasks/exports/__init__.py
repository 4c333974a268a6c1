"""Exchange: tables to a folder or store and back into another warehouse, publications, sheets for human graders."""
