"""Releases of data files: a file appears whole or not at all, and every draw can be repeated.

The modules by what they do for that promise:

- A file is released: `release_file`, `file_run`, `vital_files`. A folder: `folders`,
  `folder_release`, `folder_stage`, `folder_table`.
- How a table is released, and what it draws: `recipe`, `file_run`, `keyed_recipe`,
  `channel_recipe`, and the drawer `release_drawer`. Each of these recipes is the next one's base:
  what a table needs of it, then what a file needs, keys from a job of the ledger, and channels.
- What may stay in the output: `column_plan` decides by the header, with `output_columns`;
  `disclosure_checks` by the data.
- The same record gets the same draw, and none is drawn twice by mistake: `job` keeps the order of
  the steps. `earlier_releases` and `identified_records` take the decisions, `ledger_notices` has
  their sentences. `release_drawer` says what a record is; `same_records` and `bare_records` tell
  whether records are the same.
- What was released is not forgotten: `ledger`, `ledger_file`, `entries`, `keys`.
- Files get their names when all is complete: `target`, `writing`, `shuffling`, `stopping`.
- What goes with an output: `side_files`, `manifest`, `manifest_records`.
- What releases tell together: `past_releases`, `draws_apart`, `joint_budget`.
- What a user asks for and gets: `options`, `results`.
"""
