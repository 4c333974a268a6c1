"""The command `serve`: nights by the clock, and the other jobs at the press of a button."""

import click

from flows.options import Context, examples, shared_options


@click.command(epilog=examples(
    "prbench serve --config prbench.yaml",
    "PREFECT_API_URL=http://prefect:4200/api prbench serve      with a Prefect server that runs already",
))  # fmt: skip
@click.option("--port", type=click.IntRange(min=1, max=65535), default=4200, show_default=True,
              help="Of the Prefect server that is started where PREFECT_API_URL names none.")  # fmt: skip
@shared_options
def serve(context: Context, port: int) -> int:
    """Register the scheduled deployments, and run them when their time comes, until interrupted."""
    from flows.serving import serve as serve_deployments

    return serve_deployments(context.job, context.asked, port=port, is_verbose=context.is_verbose)
