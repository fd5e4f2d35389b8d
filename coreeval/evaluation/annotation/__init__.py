"""People rate texts without knowing which arm they are of: what they are asked, and what it shows.

The criteria are those of the CoreEval paper (Appendix D, Table 13), in our own words.
"""
