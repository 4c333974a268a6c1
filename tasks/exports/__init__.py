"""Exchange: tables to a folder or store and back into another warehouse, publications, sheets for human graders."""

from tasks.exports.exporting import export_tables
from tasks.exports.importing import import_tables, opened_export, read_export
from tasks.exports.labelling import export_drawn_labelling, export_labelling
from tasks.exports.publishing import publish
from tasks.exports.reviewing import export_review

__all__ = [
    "export_drawn_labelling",
    "export_labelling",
    "export_review",
    "export_tables",
    "import_tables",
    "opened_export",
    "publish",
    "read_export",
]
