"""A BigQuery on loopback: its REST API, and GDELT's two tables in DuckDB."""
