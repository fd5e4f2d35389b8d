"""Does a model remember a dated numeric series? NumLeak's audit, for any series."""
