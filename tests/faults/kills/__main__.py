"""The process that the kill tests fork runs from; see `forked`."""

from tests.faults.kills.forked import be_the_stage

if __name__ == "__main__":
    be_the_stage()
