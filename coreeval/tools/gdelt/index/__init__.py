"""The searchable index of a store: parts built from segments, each for a span of crawl days."""
