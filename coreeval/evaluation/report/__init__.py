"""The report of a run: report.json for programs, report.html for people."""
