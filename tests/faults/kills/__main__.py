"""The stages' process of the kill tests; it is described in `forked`."""

from tests.faults.kills.forked import be_the_stage

if __name__ == "__main__":
    be_the_stage()
