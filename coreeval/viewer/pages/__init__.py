"""One file for each kind of page: a request in, an answer out."""
