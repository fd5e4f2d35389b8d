"""The public functions of CoreEval: what `coreeval.NAME` imports when it is first used."""
