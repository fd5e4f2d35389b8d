"""What a run will cost, before it is spent: a range of calls, tokens, money and time."""
