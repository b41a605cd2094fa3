"""Complete search: the text of every record in scope is tested for a literal or a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from .notices import Unreadable
from .passages import Passage, searched
from .record import Record
from .snippets import cut
from .sources import Filters
from .stores.base import Reference, Store
from .stores.tools import TOOLS

_CHUNK = 1 << 20
_RUN = re.compile(r"[a-z]{3,}")
# Letters that adapters write themselves, in markers and in names of tools, and that stand in no file.
_MADE = " ".join(("image file audio bytes document attachment", *(name.lower() for t in TOOLS.values() for name in t)))
# What a case-folded letter may come from besides itself: the Kelvin sign, a dotted capital I, an escaped letter.
_DISGUISED = re.compile(rb"\xe2\x84\xaa|\xc4\xb0|\\u00[4-7]")


class BadPattern(ValueError):
    """A regular expression that cannot be used."""


class Literal:
    """A substring, whatever its case."""

    def __init__(self, text: str) -> None:
        self._needle = text.lower()
        self._slow = re.compile(re.escape(text), re.IGNORECASE)
        self._core = self._run()

    def find(self, text: str) -> tuple[int, int] | None:
        lowered = text.lower()
        start = lowered.find(self._needle)
        if start < 0:
            return None
        if len(lowered) == len(text):
            return start, start + len(self._needle)
        found = self._slow.search(text)  # a few letters change their length with their case
        return found.span() if found else (start, min(start + len(self._needle), len(text)))

    def _run(self) -> bytes:
        """The longest part that must stand as it is in any file that says it; empty when nothing is that sure."""
        runs = [run for run in _RUN.findall(self._needle) if run not in _MADE]
        return max(runs, key=len).encode() if runs else b""

    def may_stand_in(self, path: str) -> bool:
        """Whether a file may hold it, by its bytes alone; False is certain."""
        if not self._core:
            return True
        keep = len(self._core) + 8
        try:
            with open(path, "rb", buffering=0) as file:
                rest = b""
                while chunk := file.read(_CHUNK):
                    block = (rest + chunk).lower()
                    if self._core in block or _DISGUISED.search(rest + chunk):
                        return True
                    rest = chunk[-keep:]
        except OSError:
            return True
        return False


class Regex:
    """A regular expression of RE2, which takes linear time whatever the pattern and the text."""

    def __init__(self, text: str) -> None:
        try:
            import re2
        except ImportError:
            raise BadPattern(
                "regular expressions need the Python package google-re2 - install it, or use --match literal"
            ) from None
        options = re2.Options()
        options.log_errors = False
        try:
            self._pattern = re2.compile(text, options=options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
            raise BadPattern(
                f"no regular expression of RE2: {reason} - or search for it with --match literal"
            ) from None

    def find(self, text: str) -> tuple[int, int] | None:
        found = self._pattern.search(text)
        return found.span() if found else None


class Scan:
    """The matching records of sessions, in the order of the sessions and of their streams.

    Afterwards `records` tells how many records were tested, `found` how many match (also those past the limits),
    `sessions` how many sessions were looked through and `unreadable` which could not be.
    """

    def __init__(
        self, pattern: Literal | Regex, filters: Filters, *, limit: int = 0, a_session: int = 0, width: int = 200
    ) -> None:
        self.pattern = pattern
        self.filters = filters
        self.limit = limit
        self.a_session = a_session
        self.width = width
        self.records = self.found = self.sessions = self.skipped = 0
        self.unreadable: dict[str, Unreadable] = {}
        self._shown = 0

    def hits(
        self, chosen: Iterable[tuple[Store, Reference]], step: Callable[[], None] = lambda: None
    ) -> Iterator[Record]:
        """The hits as they are found; `step` is called after each session."""
        for store, session in chosen:
            try:
                yield from self._session(store, session)
            except Unreadable as error:
                self.unreadable.setdefault(session.session_id, error)
            except FileNotFoundError as error:
                self.unreadable.setdefault(session.session_id, Unreadable(session.path, error))
            step()

    def _session(self, store: Store, session: Reference) -> Iterator[Record]:
        self.sessions += 1
        if isinstance(self.pattern, Literal):
            files = store.text_files(session)
            if files and not any(map(self.pattern.may_stand_in, files)):
                self.skipped += 1
                return
        about: Record | None = None
        shown = 0
        for message in store.messages(session, whole=True):
            if not self._asked_for(message):
                continue
            self.records += 1
            match = self._match(message)
            if match is None:
                continue
            self.found += 1
            if (self.limit and self._shown >= self.limit) or (self.a_session and shown >= self.a_session):
                continue
            if about is None:
                about = store.row(session)
            shown += 1
            self._shown += 1
            yield self._hit(message, about, *match)

    def _asked_for(self, message: Record) -> bool:
        filters = self.filters
        if filters.roles and message["role"] not in filters.roles:
            return False
        ts = message["ts"]
        if ts and ((filters.since and ts < filters.since) or (filters.until and ts > filters.until)):
            return False
        if filters.tools:
            names = {message["tool_name"], *(call["name"] for call in message["tool_calls"])}
            return not names.isdisjoint(filters.tools)
        return True

    def _match(self, message: Record) -> tuple[Passage, int, int] | None:
        for passage in searched(message):
            if self.filters.classes and passage.kind not in self.filters.classes:
                continue
            if span := self.pattern.find(passage.text):
                return passage, *span
        return None

    def _hit(self, message: Record, about: Record, passage: Passage, start: int, end: int) -> Record:
        text = passage.text
        margin = max(0, self.width - (end - start)) // 2
        left = max(0, min(start - margin, len(text) - self.width))
        hit = {
            "harness": message["harness"],
            "session_id": message["session_id"],
            "id": message["id"],
            "ts": message["ts"],
            "role": message["role"],
            "class": passage.kind,
            "authorship": message["authorship"],
            "tool_name": message["tool_name"],
            "score": 1.0,
            "snippet": cut(text, left, min(len(text), left + self.width), start, end),
            "matched": [text[start:end][:1000]],
            "title": about["title"],
            "directory": about["directory"],
        }
        if passage.kind == "reasoning":
            hit["thinking"] = True
        return hit


def grouped(hits: Iterable[Record]) -> Iterator[Record]:
    """One hit a session, of consecutive ones: the first, with the true number and up to three further ones."""
    best: Record | None = None
    for hit in hits:
        if best is None or (hit["harness"], hit["session_id"]) != (best["harness"], best["session_id"]):
            if best is not None:
                yield best
            best = {**hit, "hit_count": 0, "classes": [], "hits": []}
        elif len(best["hits"]) < 3:
            best["hits"].append({"id": hit["id"], "class": hit["class"], "snippet": hit["snippet"]})
        best["hit_count"] += 1
        if hit["class"] not in best["classes"]:
            best["classes"].append(hit["class"])
    if best is not None:
        yield best
