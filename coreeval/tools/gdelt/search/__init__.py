"""Finding evidence in a store: what a query asks for, what a part has of it, what is best."""
