"""Exchange: tables to a folder or store and back into another warehouse, publications, sheets for human graders."""

from tasks.exports.board_files import refuse_other_suffix, write_board
from tasks.exports.data_set import export_data_sets
from tasks.exports.importing import import_tables, opened_export, read_export
from tasks.exports.inspect_logs import export_inspect
from tasks.exports.labelling import export_drawn_labelling, export_labelling
from tasks.exports.publishing import publish, published_in
from tasks.exports.reviewing import export_review
from tasks.exports.tables import export_tables

__all__ = [
    "export_data_sets", "export_drawn_labelling", "export_inspect", "export_labelling", "export_review",
    "export_tables", "import_tables", "opened_export", "publish", "published_in", "read_export",
    "refuse_other_suffix", "write_board",
]  # fmt: skip
