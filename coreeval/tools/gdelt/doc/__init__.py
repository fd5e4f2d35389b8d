"""The DOC 2.0 backend: GDELT's search service, queried slowly and with checked replies.

The service is failing in 2026 (research: gdelt §0): it throttles first requests, reports this with
status 200, and rejects short queries in plain text. So no code here relies on its answers.
"""
