"""A run or a release in the files that other tools read; one module for each of them."""
