"""The command `serve`: the scheduled nights, and the other jobs that Prefect starts."""

import re

import click

from flows.cli.common.options import Context, examples, shared_options


def _name_checked(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise click.BadParameter(f"{name!r}: letters, digits, dots, hyphens and underscores only")
    return name


@click.command(epilog=examples(
    "prbench serve --config prbench.yaml",
    "PREFECT_API_URL=http://prefect:4200/api prbench serve      with a Prefect server that runs already",
    "prbench serve --work-pool evals                            for the workers of a work pool",
))  # fmt: skip
@click.option("--port", type=click.IntRange(min=1, max=65535), default=4200, show_default=True,
              help="Of the Prefect server that is started where PREFECT_API_URL names none.")  # fmt: skip
@click.option("--name", metavar="NAME", callback=_name_checked,
              help="Call the deployments nightly-NAME and so on: for several warehouses on one server.")  # fmt: skip
@click.option(
    "--work-pool",
    metavar="NAME",
    help="Only register the deployments in this work pool, for its workers to run, and end.",
)
@shared_options
def serve(context: Context, port: int, name: str | None, work_pool: str | None) -> int:
    """Serve the scheduled deployments until interrupted."""
    from flows.serving import serve as serve_deployments

    return serve_deployments(
        context.job, context.asked, port=port, is_verbose=context.is_verbose, name=name, work_pool=work_pool
    )
