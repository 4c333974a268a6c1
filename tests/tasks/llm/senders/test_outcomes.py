"""Calls that a sender of Ray makes and the replies that it reads: the tests of those made here, once more."""
# ruff: noqa: F403 - each test of these modules is one of this module too

import pytest

from tests.tasks.llm.limits.test_stops import *
from tests.tasks.llm.test_outcomes import *
from tests.tasks.llm.transport.test_odd_figures import *
from tests.tasks.llm.transport.test_parameters import *
from tests.tasks.llm.transport.test_replies import *
from tests.tasks.llm.transport.test_transport import *

pytestmark = [pytest.mark.slow, pytest.mark.long]
# A sender has the keys of its node, which was started before the test.
del test_a_key_that_is_refused_or_missing_stops_its_model_and_is_named  # noqa: F821
