"""The report on localhost: its files, and the pages that are made when they are opened."""

from flows.report_server.serving import serve_report

__all__ = ["serve_report"]
