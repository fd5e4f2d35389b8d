"""PCR: questions about items of a benchmark, or about the train and test splits of a run."""
