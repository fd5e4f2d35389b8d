"""Gates: limits that a release must meet before it is published."""
