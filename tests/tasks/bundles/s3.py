"""An S3 server in this process with one bucket, `results`; the keys are in the environment, as
libraries expect.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import fsspec
import pytest

SECRET = "a-planted-secret-value"


@contextmanager
def bucket() -> Iterator[None]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(
        ip_address="127.0.0.1",
        port=0,
        verbose=False,
    )
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        # Without it the library of Polars accepts only TLS.
        patched.setenv("AWS_ALLOW_HTTP", "true")
        patched.setenv("AWS_ACCESS_KEY_ID", "planted-key-id")
        patched.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patched.setenv("AWS_REGION", "us-east-1")
        patched.setenv("AWS_DEFAULT_REGION", "us-east-1")
        # All servers of a process share their buckets.
        fsspec.filesystem("s3").makedirs("results", exist_ok=True)
        yield
        fsspec.filesystem("s3").clear_instance_cache()
        server.stop()
