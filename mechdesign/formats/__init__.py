"""Bytes to cells and back: CSV and Parquet, compressed or not, from a file, a stream or a frame.

A file passes through these modules. `opening` chooses those of its format, and
reads the files of a folder as one table:

    reading     urls, compression, inputs > csv_text, csv_blocks, csv    (CSV)
                                          > parquet                      (Parquet)
    writing     csv_sinks       (CSV)
                parquet_sink    (Parquet)

`cells` says what the text of a cell is, for files and frames alike. `digests` and `census`
recognise records by their hashes.
"""
