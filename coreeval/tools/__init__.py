"""What the program keeps and asks beside models: stores, news, files."""
