"""The store's intake, which converts GDELT's files from the mirror or a folder to segments."""
