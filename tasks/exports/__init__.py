"""Exchange: tables to a folder and back into another warehouse, and sheets for human graders."""

from tasks.exports.exporting import export_tables
from tasks.exports.importing import import_tables, read_export
from tasks.exports.labelling import export_labelling

__all__ = ["export_labelling", "export_tables", "import_tables", "read_export"]
