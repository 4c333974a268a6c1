"""The command `serve`: the scheduled nights, and the other jobs that Prefect starts."""

import re

import click

from flows.cli.options import Context, command


def _name_checked(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise click.BadParameter(f"{name!r}: letters, digits, dots, hyphens and underscores only")
    return name


@command(output=("verbose",))
@click.option("--port", type=click.IntRange(min=1, max=65535), default=4200, show_default=True, metavar="PORT",
              help="Port of the Prefect server that is started if PREFECT_API_URL is not set.")  # fmt: skip
@click.option("--name", metavar="NAME", callback=_name_checked,
              help="Add -NAME to the names of deployments. By default, the name of the warehouse is added where the "
                   "plain names belong to another one on the same server.")  # fmt: skip
@click.option("--work-pool", metavar="NAME",
              help="Register the deployments in this work pool and exit; the pool's workers run them.")  # fmt: skip
def serve(context: Context, port: int, name: str | None, work_pool: str | None) -> int:
    """Run the nights on schedule, until interrupted.

    Nights start on the schedule in the configuration. Backfills, checks and compactions can be started in Prefect's UI.

    Examples:
      prbench serve --config prbench.yaml
      PREFECT_API_URL=http://prefect:4200/api prbench serve
      prbench serve --work-pool evals
    """
    from flows.execution import prepare

    prepare(is_verbose=context.is_verbose)
    from flows.serving import serve as serve_deployments

    return serve_deployments(context.job, context.arguments, port=port, name=name, work_pool=work_pool)
