"""How channels are saved and read; their files are a matter of `channel.file`."""

from __future__ import annotations

import os
from typing import Any

from mechdesign.core.above import above
from mechdesign.core.files import EXISTS_OVERWRITE, check_target, replacing


class Saved:
    """A channel, which has a file."""

    def public(self) -> Any:
        """The channel without counts of the table."""
        raise NotImplementedError

    def check_public(self) -> None:
        """Refuse a public file where it would disclose the table."""

    def save(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        public: bool = False,
    ) -> None:
        """Write the channel file.

        Parameters
        ----------
        path : path of the file
        overwrite : bool
            Whether an existing file may be replaced.
        public : bool
            Leave out the joint table and whatever else discloses it (achieved budgets, utility,
            certificate and source); such a channel can be applied, but audited only with the table
            at hand.

        Raises
        ------
        InputError
            If the file exists (without `overwrite`), is a folder or cannot be written, or the
            channel may not be (`ChannelRecord.unwritable`; a public file of filled boxes, which
            needs the rows of the table).
        """
        if public:
            self.check_public()
        # Before any work: the text of a large channel takes seconds.
        check_target(path, force=overwrite, exists=EXISTS_OVERWRITE)
        channel = self.public() if public else self
        with (
            replacing(path, force=overwrite, exists=EXISTS_OVERWRITE) as temporary,
            open(temporary, "w", encoding="utf-8", newline="\n") as out,
        ):
            out.writelines(above("channel_file").pieces(channel))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a channel file; InputError if it is none, or was edited or damaged."""
        return above("channel_file").read(path)
