"""Releases of data files: a file appears whole or not at all, and every draw can be repeated.

The modules by what they do for that promise:

- What a path names is released: `release_path`. A file: `release_file`, `file_run`, `target`. A
  folder: `folders`, `folder_stage`.
- How a table is released, and what it draws: `recipe`, `file_run`, `keyed_recipe`,
  `channel_recipe`, and the drawer `release_drawer`. Each of these recipes is the next one's base:
  what a table needs of it, then what a file needs, keys from a job of the ledger, and channels.
- What may stay in the output: `column_plan` decides by the header, with `output_columns`;
  `recipe` by the data.
- The same record gets the same draw, and none is drawn twice by mistake: `job` keeps the order of
  the steps. `earlier_releases` and `identified_records` take the decisions. `release_drawer` says
  what a record is; `same_records` and `bare_records` tell whether records are the same.
- What was released is not forgotten: `ledger`, `ledger_file`, `keys`.
- Files get their names when all is complete: `target`, `writing`, `stopping`.
- What goes with an output: `side_files`, `manifest`.
- What releases tell together: `past_releases`, `joint_budget`.
- What a user asks for and gets: `options`.
"""
