"""Texts of articles: from a user's files, from CC-NEWS, and from the page itself if allowed."""
