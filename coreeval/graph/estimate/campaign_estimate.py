"""The former place of two functions, for commands that still import them from here."""

from coreeval.graph.estimate.numleak_lines import estimate_numleak
from coreeval.graph.estimate.pcr_lines import estimate_items

__all__ = ["estimate_items", "estimate_numleak"]
