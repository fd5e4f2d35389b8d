"""The offline team: a demonstration and a baseline that plays the six roles by rules and spaCy.

It shows a complete run without a key, and is a baseline for a model's results. It is not a model,
calls none, and does not replace one: its rules use words, not meanings. Its output is marked as
offline wherever it is shown.
"""

from coreeval.agents.offline.build import offline_role, offline_team
from coreeval.agents.offline.extract import SpacyExtractor
from coreeval.agents.offline.pipeline import pipeline_name

__all__ = ["SpacyExtractor", "offline_role", "offline_team", "pipeline_name"]
