"""What each role does, as ordinary async functions and pure checks: typed in, typed out."""
