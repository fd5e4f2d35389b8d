"""The store's intake: GDELT's files, from the mirror or from a folder, become dated segments."""
