"""Finding and deleting what a workspace holds about a person who asked to be taken down."""
