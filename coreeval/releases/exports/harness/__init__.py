"""Code that is exported together with data, one file per harness; it works without CoreEval."""
