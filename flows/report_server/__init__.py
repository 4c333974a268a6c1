"""The report on localhost: its files, and the pages that are made when they are asked for."""

from flows.report_server.serving import serve_report

__all__ = ["serve_report"]
