"""The roles as typed async functions, and checks without side effects."""
