"""The index of a store: segments made into parts, a span of crawl days each, and searched."""
