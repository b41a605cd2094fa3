"""tr-profile: what is in a session, and where its turning points are."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..command import COUNT, Run, envelope_option, executable, harness_option, options, session_argument
from ..extraction import chosen, guarded
from ..notices import Unreadable
from ..output import encoded, lines, write
from ..profile import numbered, profiled
from ..profile_cache import cached, keep, path_of
from ..record import Record
from ..shadow import folder
from ..stores.base import Reference, Store


@executable("tr-profile")
@options(
    session_argument,
    harness_option,
    click.option("--no-cache", is_flag=True, help="Neither read nor write the profile cache."),
    click.option("--max-bytes", type=COUNT, default=0, help="With --envelope: at most so many bytes, newest events."),
    envelope_option,
)
def main(
    run: Run, sessions: tuple[str, ...], harnesses: tuple[str, ...], no_cache: bool, max_bytes: int, envelope: bool
) -> int | None:
    """Print the profile of a session: counts, tools, files, tokens and its turning points."""
    found = _profiles(run, sessions, harnesses, not no_cache)
    write((_enveloped(run, profile, max_bytes) for profile in found) if envelope else lines(found))
    return None


def _profiles(run: Run, sessions: tuple[str, ...], harnesses: tuple[str, ...], cache: bool) -> Iterator[Record]:
    for store, session in chosen(run, sessions, harnesses):
        row = store.row(session, run.now)
        path = None
        if cache and (shadow := folder(store.harness, store.place, run.environ, run.notices)):
            path = path_of(shadow, session.session_id)
        kept = cached(path, session.updated * 1000, row["file_size"]) if path else None
        if kept is not None:
            yield {**kept, "has_tantivy_index": row["has_tantivy_index"]}
            continue
        profile = profiled(numbered(guarded(run, store, session, _entries)), row, run.notices)
        if path and session.session_id not in run.notices.failures:
            try:
                keep(path, profile)
            except OSError as error:
                run.notices.say(f"{path}: {error.strerror}; the profile is not kept")
            except ValueError as error:
                run.notices.fail(session.session_id, Unreadable(session.path, error))
        yield profile


def _entries(store: Store, session: Reference) -> Iterator[object]:
    return store.entries(session, {})


def _enveloped(run: Run, profile: Record, max_bytes: int) -> bytes:
    """The profile with as many of its newest events as fit; its counters are always there."""
    events = profile["interesting_events"]
    sizes = [len(encoded(event)) + 1 for event in events]
    kept = len(events)
    while True:
        held_back = len(events) - kept
        notice = f"TRUNCATED: {held_back} earlier events held back; raise max_bytes for more" if held_back else ""
        shown = {**profile, "interesting_events": events[held_back:]}
        head = {"event_count": len(events), "held_back": held_back, "notice": notice}
        document = encoded({**head, **run.facts(), "profile": shown})
        over = len(document) - max_bytes
        if not max_bytes or over <= 0 or not kept:
            return document
        while over > 0 and kept:
            over -= sizes[len(events) - kept]
            kept -= 1
