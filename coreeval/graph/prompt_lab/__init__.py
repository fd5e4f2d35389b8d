"""The prompt lab: the prompt of one role for a sample, and the answers of models."""
