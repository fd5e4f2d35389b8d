"""GDELT as a source of dated news: readers of its files and the backends that answer from them."""
