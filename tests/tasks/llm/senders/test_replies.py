"""Replies in all their forms that a sender of Ray reads: the tests of those read here, once more."""
# ruff: noqa: F403 - each test of these modules is one of this module too

import pytest

from tests.tasks.llm.transport.test_broken_replies import *
from tests.tasks.llm.transport.test_large_replies import *
from tests.tasks.llm.transport.test_odd_figures import *
from tests.tasks.llm.transport.test_parameters import *
from tests.tasks.llm.transport.test_redirects import *
from tests.tasks.llm.transport.test_verdict_replies import *

pytestmark = [pytest.mark.slow, pytest.mark.long]
