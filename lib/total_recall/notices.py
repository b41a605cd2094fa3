"""What a run has to say besides its records: notices for people, and what could not be read."""

from __future__ import annotations


class Unreadable(Exception):
    """A session or store that cannot be read: `place` says which, `reason` why."""

    def __init__(self, place: str, reason: object) -> None:
        if isinstance(reason, OSError):
            reason = reason.strerror or type(reason).__name__
        super().__init__(f"cannot read {place}: {reason}")
        self.place = place
        self.reason = str(reason)


class Notices:
    """The notices of one run, each said once; `failures` are those that make the exit status 3."""

    def __init__(self) -> None:
        self.said: dict[str, None] = {}
        self.failures: dict[str, str] = {}

    def say(self, text: str) -> None:
        self.said.setdefault(text)

    def fail(self, what: str, error: Unreadable) -> None:
        """Remember that `what` (a session id or a store's name) could not be read."""
        self.failures.setdefault(what, str(error))
