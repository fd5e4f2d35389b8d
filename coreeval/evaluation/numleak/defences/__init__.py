"""Instructions against revealing values: tests under attack, and their cost in usefulness."""
