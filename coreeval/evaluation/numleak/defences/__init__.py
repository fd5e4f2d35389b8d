"""Instructions against giving values away: tried under attack, and what they cost in usefulness."""
