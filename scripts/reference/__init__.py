"""The reference pages, generated from the code: `python -m scripts.reference`."""
