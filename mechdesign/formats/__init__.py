"""Bytes to cells and back: CSV and Parquet, compressed or not, from a file, a stream or a frame."""
