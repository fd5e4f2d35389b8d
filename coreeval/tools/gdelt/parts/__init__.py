"""What is searched: segments made into parts, a span of crawl days each."""
