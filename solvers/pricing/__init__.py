"""Searches for the vector of least reduced cost over a set, with a proven bound."""
