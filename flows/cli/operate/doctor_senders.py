"""What `doctor` says of Ray, where calls are made there."""

from collections.abc import Iterator

from flows.cli.operate.findings import Finding
from tasks.config.job import Job
from tasks.llm import inspect_nodes
from tasks.rules.errors import PipelineError
from tasks.run.keys import callees


def check_senders(job: Job) -> Iterator[Finding]:
    """Whether each node of Ray can make the calls of a job."""
    calls = job.settings.calls
    if calls.where != "ray":
        return
    n_senders = None if calls.senders == "auto" else calls.senders
    try:
        states = inspect_nodes(calls.address, n_senders, [callee.target for callee in callees(job)])
    except PipelineError as error:
        yield Finding("Ray", False, str(error))
        return
    if not states:
        yield Finding("Ray", False, f"{calls.address}: no node has a core to offer")
    for state in states:
        n_cores = f"{state.node.n_cores} {'core' if state.node.n_cores == 1 else 'cores'}"
        yield Finding(f"Ray node {state.node.name}", not state.problem, state.problem or n_cores)
