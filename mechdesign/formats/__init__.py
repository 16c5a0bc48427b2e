"""Bytes to cells and back: CSV and Parquet, compressed or not, from a file, a stream or a frame.

A file passes through these modules. `opening` chooses those of its format, and `folders` reads many
files as one table:

    reading     urls, inputs, compression > text_input, csv_rows, csv_blocks, csv    (CSV)
                                          > parquet                                  (Parquet)
    writing     outputs > csv_sinks, text_sink    (CSV)
                        > parquet_sink            (Parquet)

`cells` says what the text of a cell is, for files and frames alike. `digests`, `moments` and
`census` recognise records by their hashes.
"""
