"""Prompts: one file for each role, variables checked, every wording with a version."""

from coreeval.prompts.library import Prompts, built_in_prompt, load_prompts
from coreeval.prompts.prompt import Message, Prompt, as_data

__all__ = ["Message", "Prompt", "Prompts", "as_data", "built_in_prompt", "load_prompts"]
