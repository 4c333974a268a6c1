"""The output of the whole pipeline on three made-up warehouses: it stays the same, row by row."""

import pytest

from tests.golden.outputs import Outputs, collect, differences, kept

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """All outputs as they are now."""
    return collect(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", kept())
def test_an_output_is_as_it_is_kept(outputs: Outputs, name: str) -> None:
    assert name in outputs, f"{name} is gone"
    actual = differences(name, kept()[name], outputs[name])
    assert not actual, "\n".join(actual)


def test_every_output_is_kept(outputs: Outputs) -> None:
    assert set(kept()) == set(outputs)
