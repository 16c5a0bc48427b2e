"""The jobs whose ledger and released files are stored: command lines, run in a folder with the stored files."""

from __future__ import annotations

CHANNELS = ("channel_1.json", "channel_2.json", "town.json")
"""Channel files: of version 1, of version 2, and for another column."""

ROW_CHANNEL = "row_channel.json"
"""The file of a channel of rows with their own totals, two released columns and a given one."""

LEDGER = "ledger.db"

STORED_KEY = "key_of_the_ledger.txt"
"""The key, which lies beside a ledger as `ledger.db.key`; files of that name never go into the repository."""

OPTIONS = ("--ledger", LEDGER, "--keep-sensitive", "--keep", "all")

JOBS: dict[str, tuple[str, ...]] = {
    "by_row.csv": ("channel_1.json", "rows.csv"),
    "by_identifier.csv": ("channel_1.json", "people.csv", "--identity", "id"),
    "crossed.csv": ("channel_1.json", "crossed_in.csv", "--identity", "id,batch"),
    "posterior.csv": ("channel_1.json", "posterior_in.csv", "--as", "posterior-draw"),
    "shuffled.csv": ("channel_1.json", "shuffled_in.csv", "--shuffle"),
    "two_columns.csv": ("channel_1.json", "two_in.csv", "--also", "town.json"),
    "confident.csv": ("channel_2.json", "confident_in.csv"),
    "nasty_out.csv": ("channel_1.json", "nasty.csv", "--identity", "id"),
}
"""Released files, and what `apply` makes them of; the order is that of the ledger."""
