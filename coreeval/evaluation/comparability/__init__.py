"""Comparability: is the updated arm as long and hard as the original, and on the same topics?"""
