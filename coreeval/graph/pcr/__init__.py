"""PCR: asking about items of a benchmark, and the train and test split of a run."""
