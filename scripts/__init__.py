"""Scripts that make what the repository publishes: reference pages and the site."""
