"""A channel for tools that cannot run Python: a lookup table, and SQL and R that draw from it.

All of them draw alike. A record's number is the first 53 bits of SHA-256 over the secret key, the
digest of the channel and the record's identifier. The record gets the output whose
interval of cumulative integers contains the number. So one key gives the same draws in every
database and in R (other draws than those of `apply`), and no floating point is compared.
"""
