"""What BigQuery charges for a query on demand, and in which words that is told."""

from datetime import date

from coreeval.tools.gdelt.bigquery.statements import Statement

USD_PER_TIB = 6.25
AS_OF = date(2026, 6, 1)
SOURCE = "on-demand, US, as public code quotes https://cloud.google.com/bigquery/pricing"
"""Where the price was read and when; the month's first TiB is free, which is not counted here."""
TIB = 1 << 40
GB = 10**9
LEAST_BILLED = 10 * (1 << 20)
"""Bytes that a statement is billed for each table, however little it reads."""


def billed_at_least(statement: Statement, scanned: int) -> int:
    """Return the bytes that a statement will be billed if it scans so many."""
    return max(scanned, LEAST_BILLED * len(statement.tables))


def usd(billed: int) -> float:
    """Return the list price in US dollars."""
    return billed / TIB * USD_PER_TIB


def told(billed: int) -> str:
    """Write bytes and their price: `12.40 GB ($0.0705)`."""
    return f"{billed / GB:,.2f} GB (${usd(billed):,.4f})"
