"""The table of a sensitive and a useful variable, counted exactly from cells."""
