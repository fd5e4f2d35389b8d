"""GDELT's tables on BigQuery as a source of news: one bounded, priced request for a whole run."""
