"""Linear programs whose coefficients lie in boxes."""
