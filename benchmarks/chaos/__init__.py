"""A campaign of misfortunes and attacks, each tried on the commands that people run."""
