"""The DOC 2.0 backend: GDELT's search service, asked politely and believed with care.

The service is failing in 2026 (research: gdelt §0): it throttles first requests, says so with
status 200, and calls a query too short in plain text. So nothing here rests on its answering.
"""
