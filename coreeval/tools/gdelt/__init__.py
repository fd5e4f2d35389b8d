"""GDELT as a source of dated news: readers of its files, and backends that search them."""
