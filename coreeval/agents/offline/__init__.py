"""The offline team: a demonstration and a baseline that play the six roles by rules and spaCy.

It shows a whole run without a key, and gives a model's results something to beat. It is no model,
asks none, and is no substitute for one: its rules see words, not meanings. Its output is marked as
offline wherever it is shown.
"""

from coreeval.agents.offline.build import offline_role, offline_team
from coreeval.agents.offline.extract import SpacyExtractor
from coreeval.agents.offline.pipeline import pipeline_name

__all__ = ["SpacyExtractor", "offline_role", "offline_team", "pipeline_name"]
