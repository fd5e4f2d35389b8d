"""Tests of the pages: what they say, whom they answer, and how they read in a browser."""
