"""Blind ratings of texts by people: raters do not know the arm of a text.

The criteria are those of the CoreEval paper (Appendix D, Table 13), in our own words.
"""
