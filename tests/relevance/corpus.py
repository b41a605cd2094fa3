"""The labelled corpus: the stories, told deep inside noisy sessions of four harnesses, among hundreds of others.

Everything follows from one seed. The others are what a store is full of: logs, diffs, file reads, stack traces, and
what competes with the right answer: runbooks and skills that say the same things, greps over them, plans that list
them, sessions about something near.
"""

import os
import re
from random import Random

from total_recall.record import message, tool_call
from total_recall.times import epoch, from_epoch

from tests.linestore import write_session
from tests.relevance.scenarios import STORIES

HARNESSES = ("claude", "codex", "opencode", "vibe")
FIRST, LAST = epoch("2026-01-10T08:00:00Z"), epoch("2026-11-20T18:00:00Z")
SENTENCES = [(name, part, getattr(story, part)) for name, story in STORIES.items() for part in ("ask", "think", "say")]
_WORD = re.compile(r"[^\W\d_]{3,}")
_SMALL = re.compile(r"(?<!\w)[a-zà-ÿ]{3,12}(?!\w)")
VOCABULARY = sorted({word for _, _, text in SENTENCES for word in _SMALL.findall(text)})
COMMON = [
    "update",
    "check",
    "look",
    "change",
    "add",
    "remove",
    "file",
    "test",
    "build",
    "fix",
    "branch",
    "review",
    "config",
    "service",
    "handler",
    "value",
    "default",
    "option",
    "error",
    "result",
    "request",
    "response",
    "client",
    "server",
    "user",
    "data",
    "list",
    "table",
    "column",
    "field",
    "cache",
    "queue",
    "worker",
    "job",
    "task",
    "run",
    "output",
    "input",
    "path",
    "module",
    "package",
    "version",
    "release",
    "deploy",
    "log",
    "line",
    "time",
    "window",
    "limit",
    "key",
    "token",
    "session",
    "page",
    "image",
    "node",
    "cluster",
    "pod",
    "container",
    "network",
    "timeout",
    "retry",
    "connection",
    "certificate",
    "handshake",
    "database",
    "query",
    "index",
    "lock",
    "thread",
    "memory",
    "heap",
    "garbage",
    "collector",
    "snapshot",
    "export",
    "import",
    "upload",
    "download",
    "header",
    "cookie",
    "redirect",
    "login",
    "callback",
    "batch",
    "slice",
    "lag",
    "burst",
    "partner",
    "endpoint",
    "api",
    "message",
    "thread",
    "cursor",
    "offset",
]
VERBS = ("fetch", "load", "parse", "render", "merge", "flush", "resolve", "encode", "split", "assign", "revoke", "sync")
NOUNS = ("Message", "Page", "Tile", "Entry", "Bucket", "Quota", "Ledger", "Batch", "Header", "Probe", "Token", "Cursor")


class Corpus:
    """Writes the sessions; `places` tells where each part of a story went: (harness, session id, record id)."""

    def __init__(self, folder, seed=2026):
        self.folder = str(folder)
        self.random = Random(seed)
        self.places = {}
        self.sessions = 0
        self.current = []

    def write(self):
        for harness in HARNESSES:
            os.makedirs(os.path.join(self.folder, harness))
        for number, name in enumerate(STORIES):
            self.story(name, HARNESSES[number % 4], noise=self.random.choice((6, 20, 60)))
        self.long_session()
        self.twice("early", "2026-02-03T09:00:00Z", "sprocket calibration drifts by two microns a day")
        self.twice("late", "2026-09-21T09:00:00Z", "sprocket calibration drifts again, four microns this time")
        self.tries()
        self.child()
        self.echo("how did we limit the checkout endpoint per key so that one partner's bursts are allowed?")
        self.echo("redirect loop: was it the state cookie and SameSite?")
        for number in range(60):
            self.reading(number)
        for number in range(70):
            self.planning(number)
        for number in range(90):
            self.near(number)
        for _ in range(60):
            self.chatter()
        return self

    # -- the sessions that answer ------------------------------------------------------------------------------

    def story(self, name, harness, noise):
        session = Session(self, harness, STORIES[name].project)
        self.tell(session, name, noise)
        session.close()

    def tell(self, session, name, noise):
        story = STORIES[name]
        for part in ("ask", "think", "run", "out", "say"):
            session.noise(self.random.randrange(noise // 3, noise + 1))
            self.places[f"{name}.{part}"] = session.part(part, getattr(story, part))
            self.aside(session, story)
        session.noise(self.random.randrange(noise // 3, noise + 1))

    def aside(self, session, story):
        """What a session says of its matter besides: a few of its words, here and there."""
        words = _WORD.findall(f"{story.ask} {story.think}")
        for _ in range(self.random.randrange(3)):
            some = " ".join(self.random.sample(words, min(4, len(words))))
            session.part(self.random.choice(("think", "run")), f"echo {some} {self.words(3)}")
            session.noise(2)

    def long_session(self):
        """Two stories in the middle of a session of thousands of records."""
        session = Session(self, "claude", "monorepo")
        for name in ("wal", "bidi"):
            session.noise(900)
            self.tell(session, name, 60)
        session.noise(900)
        session.close()

    def twice(self, name, moment, text):
        session = Session(self, "codex", "mill-control", epoch(moment))
        session.noise(8)
        self.places[f"{name}.ask"] = session.part("ask", f"The {text}. Correct it.")
        session.noise(8)
        session.close()

    def tries(self):
        """One task, asked three times in the same words; each try ended otherwise."""
        ends = (
            "I could not reproduce it: the sample pictures are upright.",
            "The new sharp version broke the build, so I rolled it back; the thumbnails are as before.",
            "Fixed: the EXIF orientation is read before resizing, and the tag is dropped from the webp files.",
        )
        for number, end in enumerate(ends, 1):
            session = Session(self, HARNESSES[number], "thumb-svc")
            session.part(
                "ask", "The webp thumbnails of phone pictures lie on their side. Find out why and fix the orientation."
            )
            session.noise(14)
            self.places[f"try{number}.say"] = session.part("say", end)
            session.close()

    def child(self):
        session = Session(self, "claude", "growth-lab", child=True)
        self.places["child.ask"] = session.part(
            "delegated", "Make an audit of the feature toggles: which are unused? Answer with a list."
        )
        session.noise(10)
        self.places["child.out"] = session.part("out", "toggles.yml:14: legacy_invoice_footer: true   # never read")
        self.places["child.say"] = session.part(
            "say", "The audit found nine unused toggles; the list begins with legacy_invoice_footer."
        )
        session.close()

    def echo(self, question):
        """The conversation in which the question is being asked now."""
        session = Session(self, "claude", "today", LAST)
        session.part("ask", question)
        session.part("think", f"The person asks: {question} I should search for it: {question}")
        session.part("say", f"Let me look that up. You ask: {question}")
        session.close()
        self.current.append(session.session_id)

    # -- the sessions that do not ------------------------------------------------------------------------------

    def reading(self, number):
        """Runbooks, skills and web pages that say much of what the stories say."""
        session = Session(self, self.random.choice(HARNESSES), self.random.choice(("handbook", "wiki", "ops-scripts")))
        session.part(
            "ask", self.random.choice(("Tidy up our handbook.", "Read the runbooks first.", "Summarise the wiki page."))
        )
        for _ in range(self.random.randrange(1, 4)):
            lines = [text for _, _, text in self.random.sample(SENTENCES, 9)]
            kind = self.random.choice(("file-read", "web-fetch", "skill", "injected-text"))
            session.part(kind, "\n\n".join(f"## {self.words(3)}\n{self.blurred(line)}" for line in lines))
            session.noise(4)
        session.part("say", f"Done: the page about {self.words(2)} is shorter now.")
        session.close()

    def planning(self, number):
        """Greps, plans and todo lists: short texts with many of the words, and no story."""
        session = Session(self, self.random.choice(HARNESSES), self.random.choice(("backlog", "planning", "release")))
        session.part("ask", f"What is left to do about {self.words(2)} before the release?")
        session.noise(3)
        for _ in range(self.random.randrange(2, 6)):
            _, _, text = self.random.choice(SENTENCES)
            session.part("run", f"rg -n {self.words(1)} docs/")
            session.part(
                "out", f"docs/{self.words(1).lower()}.md:{self.random.randrange(400)}: {self.blurred(text, 0.7)}"
            )
        session.noise(6)
        session.part("say", f"Left: {self.words(4)}; {self.words(5)}.")
        session.close()

    def near(self, number):
        """Sessions about something near: half of the words of one story, half of another's, and its own end."""
        one, other = self.random.sample(sorted(STORIES), 2)
        mixed = [
            f"{self.blurred(getattr(STORIES[one], part), 0.6)} {self.blurred(getattr(STORIES[other], part), 0.4)}"
            for part in ("ask", "think", "say")
        ]
        session = Session(self, self.random.choice(HARNESSES), STORIES[one].project)
        for part, text in zip(("ask", "think", "say"), mixed, strict=True):
            words = text.split()
            self.random.shuffle(words)
            session.part(part, " ".join(words))
            session.noise(self.random.randrange(2, 12))
        session.part("out", f"{self.random.choice(mixed[0].split())} " * self.random.randrange(1, 9) + self.words(12))
        session.close()

    def chatter(self):
        session = Session(self, self.random.choice(HARNESSES), self.random.choice(("misc", "sandbox", "scratch")))
        for _ in range(self.random.randrange(2, 7)):
            session.part("ask", f"Please {self.words(4).lower()} and {self.words(3).lower()}?")
            session.noise(self.random.randrange(3, 25))
            session.part("say", f"I did: {self.words(9)}.")
        session.close()

    def words(self, count):
        return " ".join(self.random.choice(VOCABULARY if self.random.random() < 0.2 else COMMON) for _ in range(count))

    def blurred(self, text, kept=0.8):
        """The sentence with some of its words left out, and without what only the story has."""
        return " ".join(
            word for word in text.split() if self.random.random() < kept and not re.search(r"\d|[a-z][A-Z]", word)
        )


class Session:
    """One session on its way to its file."""

    def __init__(self, corpus, harness, project, begin=None, child=False):
        self.corpus = corpus
        self.random = corpus.random
        self.harness = harness
        self.session_id = f"{harness}-{corpus.sessions:04d}"
        corpus.sessions += 1
        self.project = project
        self.child = child
        self.clock = begin or self.random.uniform(FIRST, LAST)
        self.records = []
        self.calls = 0

    def add(self, role, content="", **extra):
        authors = {"user": "delegated" if self.child else "human", "assistant": "model", "tool": "tool"}
        extra.setdefault("authorship", authors[role])
        self.clock += self.random.uniform(1, 40)
        number = len(self.records) + 1
        self.records.append(
            message(self.harness, self.session_id, number, role, from_epoch(self.clock), content, **extra)
        )
        return (self.harness, self.session_id, number)

    def part(self, kind, text):
        if kind in ("ask", "delegated"):
            return self.add("user", text)
        if kind == "injected-text":
            return self.add("user", text, authorship="injected")
        if kind == "think":
            return self.add("assistant", thinking=text)
        if kind == "say":
            return self.add("assistant", text)
        if kind == "run":
            return self.call("Bash", {"command": text})
        name = {"file-read": "Read", "web-fetch": "WebFetch", "skill": "Skill"}.get(kind, "Bash")
        if kind != "out":
            self.call(name, {"file_path": f"/srv/{self.project}/{self.corpus.words(1).lower()}.md"})
        return self.add(
            "tool", text, tool_name=name, tool_call_id=f"c{self.calls}", kind=None if kind == "out" else kind
        )

    def call(self, name, arguments):
        self.calls += 1
        return self.add("assistant", tool_calls=[tool_call(f"c{self.calls}", name, arguments)])

    def noise(self, count):
        while count > 0:
            maker = self.random.choice((self.log, self.tests, self.diff, self.trace, self.source, self.talk))
            maker()
            count -= 2

    def log(self):
        self.call("Bash", {"command": f"tail -{self.random.randrange(20, 90)} /var/log/{self.project}.log"})
        lines = [
            f"2026-09-{self.random.randrange(1, 29):02d}T{self.random.randrange(24):02d}:00:0{self.random.randrange(10)}Z"
            f" {self.random.choice(('INFO', 'WARN', 'ERROR'))} worker-{self.random.randrange(9)}"
            f" {self.corpus.words(self.random.randrange(2, 6))} {self.random.randrange(9000)} ms"
            for _ in range(self.random.randrange(4, 30))
        ]
        self.add("tool", "\n".join(lines), tool_name="Bash", tool_call_id=f"c{self.calls}")

    def tests(self):
        self.call("Bash", {"command": "pytest -q"})
        names = [
            f"tests/test_{self.identifier('_')}.py::test_{self.identifier('_')} PASSED"
            for _ in range(self.random.randrange(3, 15))
        ]
        self.add("tool", "\n".join(names) + f"\n{len(names)} passed", tool_name="Bash", tool_call_id=f"c{self.calls}")

    def diff(self):
        name = f"/srv/{self.project}/src/{self.identifier('_')}.py"
        old, new = (
            f"    {self.identifier('_')} = {self.identifier('')}({self.random.randrange(99)})" for _ in range(2)
        )
        self.call("Edit", {"file_path": name, "old_string": old, "new_string": new})
        self.add("tool", f"--- {name}\n-{old}\n+{new}", tool_name="Edit", tool_call_id=f"c{self.calls}")

    def trace(self):
        self.call("Bash", {"command": f"npm run {self.corpus.words(1).lower()}"})
        frames = [
            f"    at {self.identifier('')} (src/{self.identifier('-')}.ts:{self.random.randrange(400)}:7)"
            for _ in range(5)
        ]
        text = f"Error: {self.corpus.words(self.random.randrange(2, 5))}\n" + "\n".join(frames)
        self.add("tool", text, tool_name="Bash", tool_call_id=f"c{self.calls}", is_error=True)

    def source(self):
        self.call("Read", {"file_path": f"/srv/{self.project}/src/{self.identifier('_')}.py"})
        lines = [
            f"def {self.identifier('_')}(self, {self.identifier('_')}):  # {self.corpus.words(4)}"
            for _ in range(self.random.randrange(3, 20))
        ]
        self.add("tool", "\n".join(lines), tool_name="Read", tool_call_id=f"c{self.calls}", kind="file-read")

    def talk(self):
        self.add("assistant", thinking=f"Next: {self.corpus.words(7)}.")
        self.add("assistant", f"Now I {self.corpus.words(5).lower()}.")

    def identifier(self, joint):
        verb, noun = self.random.choice(VERBS), self.random.choice(NOUNS)
        other = self.random.choice(COMMON)
        if not joint:
            return verb + noun + other.title()
        return joint.join((verb, noun.lower(), other))

    def close(self):
        about = {"directory": f"/home/dev/{self.project}"}
        write_session(os.path.join(self.corpus.folder, self.harness), self.session_id, self.records, about, self.clock)
