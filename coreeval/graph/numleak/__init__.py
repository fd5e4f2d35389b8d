"""Asking targets about dated series: what is asked, what it costs, and the asking."""
