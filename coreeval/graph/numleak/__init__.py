"""Plans and asks questions to targets about dated series."""
