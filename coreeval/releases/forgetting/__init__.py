"""Finding and deleting what a workspace holds of somebody who asked to be forgotten."""
