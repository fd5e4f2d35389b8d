"""How peaked the distribution is that a value is read out of (research: numleak, appendix R)."""
