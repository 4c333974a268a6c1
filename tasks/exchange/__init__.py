"""Exchange: tables to a folder and back into another warehouse, and sheets for human graders."""

from tasks.exchange.exporting import export_tables
from tasks.exchange.importing import import_tables
from tasks.exchange.labelling import export_labelling

__all__ = ["export_labelling", "export_tables", "import_tables"]
