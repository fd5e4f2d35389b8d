"""The prompt lab: what one role is shown for a sample, and what a model makes of it."""
