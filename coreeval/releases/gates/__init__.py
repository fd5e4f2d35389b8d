"""Gates: limits that a release must keep before others get it."""
