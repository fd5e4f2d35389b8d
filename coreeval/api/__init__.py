"""The public functions of CoreEval, which `coreeval.NAME` imports on first use."""
