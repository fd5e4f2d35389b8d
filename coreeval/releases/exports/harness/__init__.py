"""Code that exports put beside their data, a file for each harness; there it needs no CoreEval."""
