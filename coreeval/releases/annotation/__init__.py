"""People's ratings of a run's texts: sheets out, and what the ratings show into its releases."""
