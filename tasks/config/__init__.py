"""Settings as types."""

from tasks.config.data_revision import DataRevision
from tasks.config.job import Job
from tasks.config.judges import Cascade, Judge
from tasks.config.models import ORIGINAL, Analyst, Capabilities, Embedding, Endpoint, Model
from tasks.config.operations import Alerts, Email, Nightly, Receiver, Report
from tasks.config.policies import default_policy, expectations_of, policies_of
from tasks.config.settings import Dataset, Settings
from tasks.config.stopping import EARLIER_NIGHTS, EVERY_PAIR, Stopping

__all__ = [
    "EARLIER_NIGHTS",
    "EVERY_PAIR",
    "ORIGINAL",
    "Alerts",
    "Analyst",
    "Capabilities",
    "Cascade",
    "DataRevision",
    "Dataset",
    "Email",
    "Embedding",
    "Endpoint",
    "Job",
    "Judge",
    "Model",
    "Nightly",
    "Receiver",
    "Report",
    "Settings",
    "Stopping",
    "default_policy",
    "expectations_of",
    "policies_of",
]
