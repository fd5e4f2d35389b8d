"""The offline team: the six roles by rules and spaCy, for tests, demos and an honest baseline.

It is no model and asks none. What it writes is marked as offline wherever it is shown.
"""

from coreeval.agents.offline.build import offline_role, offline_team
from coreeval.agents.offline.extract import SpacyExtractor
from coreeval.agents.offline.pipeline import pipeline_name

__all__ = ["SpacyExtractor", "offline_role", "offline_team", "pipeline_name"]
