"""What recorded answers about a series show: pure functions over points and comparisons."""
