"""The linear program of a channel of least cost on the symbols of a column."""
