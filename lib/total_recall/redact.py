"""Credentials out of texts: each one becomes `[REDACTED:<kind>]`, everything else stays byte for byte.

A rule looks at bytes and finds spans, so that neither the encoding of a text nor what is invalid in it matters. The
rules are linear: beyond a fixed number of bytes nothing is scanned twice, whatever the input. Doing it again changes
nothing, because a marker counts as a value that is redacted already, whatever stands beside it.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import orjson

Place = tuple[int, int]
Span = tuple[int, int, str]  # start, end, kind
Change = tuple[int, int, bytes]  # start, end, what stands there instead

# A credential to which several kinds apply is called by the first.
KINDS = ("pem", "bearer", "vendor-key", "github-token", "jwt", "url-password", "secret")

_MARKER = re.compile(rb"\[REDACTED:(?:%b)\]" % "|".join(KINDS).encode())


def redacted(text: str) -> str:
    """`text` without the credentials in it."""
    data = text.encode("utf-8", "surrogatepass")
    return _marked(data, spans(data)).decode("utf-8", "surrogatepass")


class Rule(NamedTuple):
    """How one kind is found; it cannot apply to data without one of the `needles`, which are in lower case."""

    kind: str
    find: Callable[[bytes], Iterable[Place]]
    needles: tuple[bytes, ...]


def spans(data: bytes, rules: Iterable[Rule] | None = None) -> list[Span]:
    """Where the credentials are, in order and without overlaps; `rules` are those that can apply, None is all."""
    rules = likely(data, RULES if rules is None else rules)
    if not rules:
        return []
    data = _masked(data, (match.span() for match in _MARKER.finditer(data)))
    found: list[Span] = []
    for rule in rules:
        places = list(rule.find(data))
        found += [(start, end, rule.kind) for start, end in places]
        if rule.kind == "pem":
            data = _masked(data, places)
    return _joined(found)


def _joined(found: list[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end, kind in sorted(found):
        if joined and start < joined[-1][1]:
            before = joined[-1]
            joined[-1] = (before[0], max(end, before[1]), min(kind, before[2], key=KINDS.index))
        else:
            joined.append((start, end, kind))
    return joined


def likely(data: bytes, rules: Iterable[Rule]) -> list[Rule]:
    """The rules that may find something in `data`: a few substring searches that spare most texts the rest."""
    lower = data.lower()
    return [rule for rule in rules if any(map(lower.__contains__, rule.needles))]


def _masked(data: bytes, places: Iterable[Place]) -> bytes:
    """`data` with NULs where it is redacted already: part of a value, and alone a value to be left as it is."""
    masked = None
    for start, end in places:
        masked = masked or bytearray(data)
        masked[start:end] = bytes(end - start)
    return bytes(masked) if masked else data


def _marker(kind: str) -> bytes:
    return b"[REDACTED:%b]" % kind.encode()


def _marked(data: bytes, found: list[Span]) -> bytes:
    return _changed(data, [(start, end, _marker(kind)) for start, end, kind in found]) if found else data


def _changed(data: bytes, changes: list[Change]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, instead in changes:
        pieces += (data[done:start], instead)
        done = end
    pieces.append(data[done:])
    return b"".join(pieces)


def _reach(pattern: re.Pattern[bytes], data: bytes, start: int, end: int = -1) -> int:
    """Where the match that begins at `start` ends; `start` itself if there is none."""
    match = pattern.match(data, start) if end < 0 else pattern.match(data, start, end)
    return match.end() if match else start


# -- keys that are known by their shape ------------------------------------------------------------------------

_VENDOR = (
    rb"sk[-_]|ctx7sk-|tvly-|xox[abcdeoprs]-|xapp-|gl(?:dt|pat|ptt|rt)-|AIza|A[KS]IA|hf_|npm_|gsk_|do[opr]_v1_|dckr_pat_"
    rb"|lin_api_|nvapi-|pplx-|pypi-AgE|r8_|rk_(?:live|test)_|shp(?:at|ca|pa|ss)_|whsec_|xai-"
)
_GITHUB = rb"github_pat_|gh[oprsu]_"
_BODY = re.compile(rb"[A-Za-z0-9_-]*+")

# A letter before a key makes it part of a word, unless it ends an escape: \n, \u000a, %3D, a colour of a terminal.
_ESCAPE_END = re.compile(
    rb"(?:\\[abefnrtv0]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}"
    rb"|(?:\x1b|\\u001b|\\x1b|\\e|\\033)\[[0-9;]{0,12}[A-Za-z])\Z"
)
_ALNUM = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_BASE64URL = _ALNUM | frozenset(b"_-")


def _glued(data: bytes, start: int, letters: frozenset[int] = _ALNUM) -> bool:
    return start > 0 and data[start - 1] in letters and not _ESCAPE_END.search(data, max(0, start - 24), start)


def _keys(prefixes: bytes) -> Callable[[bytes], Iterator[Place]]:
    pattern = re.compile(rb"(?:%b)(?=[A-Za-z0-9_-]{12})" % prefixes)

    def find(data: bytes) -> Iterator[Place]:
        done = 0
        for match in pattern.finditer(data):
            start = match.start()
            if start >= done and not _glued(data, start):
                done = _reach(_BODY, data, match.end())
                yield start, done

    return find


_JWT = re.compile(rb"eyJ[\w-]*+\.[\w-]*+\.[\w-]++(?:\.[\w-]++){0,2}+")


def _jwts(data: bytes) -> Iterator[Place]:
    start = data.find(b"eyJ")
    while start >= 0:
        end = start if _glued(data, start, _BASE64URL) else _reach(_JWT, data, start)
        if end > start:
            yield start, end
        start = data.find(b"eyJ", max(start + 3, end))


_BEARER = re.compile(
    rb"bearer(?:[ \t:=\"'\\+]|%20)++([a-z0-9_.~+/=-]{8,}+|(?=[a-z_.~+/=-]*[0-9])[a-z0-9_.~+/=-]{4,})",
)
_BEARER_WORDS = (b"authentication", b"authorization", b"authorisation", b"credentials", b"challenge", b"security")


def _bearers(data: bytes) -> Iterator[Place]:
    for match in _BEARER.finditer(data.lower()):
        if match[1].rstrip(b".") not in _BEARER_WORDS:
            yield match.span(1)


# -- PEM blocks ------------------------------------------------------------------------------------------------

_PEM_BYTES = 64 * 1024  # of base64 lines that are taken without an END
_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(rb"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]*+")

# What stands between two lines of a block, also where it is escaped, numbered, quoted or part of a diff.
_NEWLINE = rb"\r?\n|(?:\\{1,8}r)?\\{1,8}n"
_MARGIN = rb"[ \t]*+(?:[0-9]{1,6}(?:\t|\xe2\x86\x92|[:|] ?)|[>|+#*-](?!--) ?)?+[ \t]*+"
_BREAK = rb"[ \t]*+(?:%b)%b" % (_NEWLINE, _MARGIN)
_GAP = rb"[ \t]*+(?:%b|(?<=[ \t]))%b" % (_NEWLINE, _MARGIN)
_BASE64_LINES = re.compile(
    rb"(?>%(gap)b(?:[A-Z][A-Za-z-]{1,20}: [^\r\n\\]{1,100}+)?+)*?"  # Proc-Type, DEK-Info, and the blank line after them
    rb"(?>%(gap)b[A-Za-z0-9+/]{16,}+={0,2}+|%(break)b[A-Za-z0-9+/]{8,}+={0,2}+(?![^\s\"'\\]))++"
    rb"(?:(?>%(gap)b)[A-Za-z0-9+/]{1,15}+={0,2}+(?![^\s\"'\\]))?+"  # the last line may be short
    % {b"gap": _GAP, b"break": _BREAK}
)


def _pem(data: bytes) -> Iterator[Place]:
    begins = list(_BEGIN.finditer(data))
    ends = [begin.start() for begin in begins[1:]] + [len(data)]
    for begin, after in zip(begins, ends, strict=False):
        if end := _END.search(data, begin.end(), after):
            yield begin.start(), end.end()
        else:
            body = _reach(_BASE64_LINES, data, begin.end(), min(after, begin.end() + _PEM_BYTES))
            yield begin.start(), max(body, _reach(_BASE64, data, body))


# -- passwords in URLs -----------------------------------------------------------------------------------------

_URL = re.compile(rb"(?<=[A-Za-z0-9+.-]):\\?/\\?/[^\s\"'`<>/?#@:\[\]]*+:([^\s\"'`<>/?#]*+)")
_PORT = re.compile(rb"[0-9]{0,5}\\?")
_PATH = re.compile(rb"[/?#][^\s\"'`<>@]{0,256}@")


def _url_passwords(data: bytes) -> Iterator[Place]:
    for match in _URL.finditer(data):
        start, end = match.span(1)
        at = data.rfind(b"@", start, end)
        if at < 0 and not _PORT.fullmatch(match[1]):
            at = _reach(_PATH, data, end) - 1  # a password with a slash in it
            at = at if at >= end else -1
        if at > start and data[start:at].strip(b"\0"):
            yield start, at


# -- assignments (in lower case) -------------------------------------------------------------------------------

_NAME = (
    rb"(?:api[_-]?key|(?:access|private|secret)[_-]?key|token|secret|passw(?:or)?d|passphrase|credentials?"
    rb"|authorization)"
)
_KEY_NAME = re.compile(_NAME + rb"\s*\Z")
_ASSIGNED = re.compile(
    _NAME + rb"[\\\"'`\])]{0,16}+[ \t]*+(?:::?=?|[=-]>|[?+!]?={1,3}|%3[ad])"
    rb"|(?<!-)--[a-z0-9_-]{0,40}?" + _NAME + rb"[ \t]++(?=[\"']|[^\s]{0,64}[0-9])"
)
_OPENED = re.compile(rb"\s*+[\[(]?\s*+[bfru]{0,2}(\\*+)([\"'`])")
_QUOTES = {quote: re.compile(rb"(?<!\\)(\\*+)(?:\n|%b)" % quote) for quote in (b'"', b"'", b"`")}
_SCHEME = re.compile(rb"(?:apikey|basic|bearer|bot|digest|negotiate|ntlm|token)[ \t]++")
_BARE = re.compile(rb"[ \t]*+(?![\[({=<])((?:[^\s\"'`,;}\])&#\\]|\\++(?![\"'`])|[\"'](?=[a-z0-9]))++)")
_ANNOTATED = re.compile(rb"[\])]{0,4}+[ \t]*+=[ \t]*+(?:[a-z_][a-z0-9_.:]{0,60}+\()?(?=[bfru]{0,2}\\*+[\"'`])")
_CALLED = re.compile(rb"(?<=\()(?=\\*+[\"'`])")
_NOTHING = re.compile(rb"(?:false|nil|none|null|true|undefined|\$\(.*|\$\{[a-z_][a-z0-9_.:-]*\}?|\0*)", re.DOTALL)


def _secrets(data: bytes) -> Iterator[Place]:
    text = data.lower()
    position = done = 0
    while match := _ASSIGNED.search(text, position):
        position = match.end()
        if position < done:
            continue
        for start, end in _values(text, position):
            done = max(done, end)
            if not _NOTHING.fullmatch(text, start, end):
                yield start, end
        # What lies in a value is redacted with it; a name at its end may still be assigned to.
        position = max(position, done - 24)


_SPACES = re.compile(rb"[ \t]*+")


def _values(text: bytes, position: int) -> Iterator[Place]:
    """The value at `position`: between its quotes, else as far as it can reach; with a type before it, both."""
    if opened := _OPENED.match(text, position):
        yield _quoted(text, opened)
        return
    position = _reach(_SCHEME, text, _reach(_SPACES, text, position))
    if bare := _BARE.match(text, position):
        if len(bare[1]) >= 4:
            yield bare.span(1)
        position = bare.end()
    if following := _CALLED.match(text, position) or _ANNOTATED.match(text, position):
        opened = _OPENED.match(text, following.end())
        if opened:
            yield _quoted(text, opened)


def _quoted(text: bytes, opened: re.Match[bytes]) -> Place:
    """What stands between two quotes that are escaped alike; without the second, the rest of the line."""
    start, depth = _reach(_SCHEME, text, opened.end()), len(opened[1])
    for match in _QUOTES[opened[2]].finditer(text, opened.end()):
        slashes, end = len(match[1]), match.end() - 1
        if text[end] == 10:  # newline
            return start, max(start, end)
        if slashes % (2 * depth + 2) == depth:
            return start, max(start, end - depth)
        if slashes < depth:  # the end of a string that this one is in
            return start, max(start, match.start())
    return start, len(text)


_VENDOR_NEEDLES = (
    b"sk- sk_ tvly- xox xapp- gldt- glpat- glptt- glrt- aiza akia asia hf_ npm_ _v1_ _pat_ lin_api_ nvapi- pplx-"
    b" pypi-age r8_ rk_live_ rk_test_ shp whsec_ xai-"
)
RULES = (
    Rule("pem", _pem, (b"private key",)),
    Rule("bearer", _bearers, (b"bearer",)),
    Rule("vendor-key", _keys(_VENDOR), tuple(_VENDOR_NEEDLES.split())),
    Rule("github-token", _keys(_GITHUB), (b"_pat_", b"gho_", b"ghp_", b"ghr_", b"ghs_", b"ghu_")),
    Rule("jwt", _jwts, (b"eyj",)),
    Rule("url-password", _url_passwords, (b"://", b":\\/\\/")),
    Rule("secret", _secrets, (b"key", b"token", b"secret", b"pass", b"credential", b"authorization")),
)


# -- the filter ------------------------------------------------------------------------------------------------

_HELD_BYTES = 1 << 20  # how far the END of a block is looked for
_EDGE = re.compile(rb"(?P<begin>%b)|%b" % (_BEGIN.pattern, _END.pattern))
_RAW_HEAD = re.compile(rb"(?:tool|user|assistant|thinking|system),[0-9TZ:.-]*,(?=\{)")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def redact_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without their credentials; their number stays, but for a PEM block that covers several.

    A line of JSON (or of `type,timestamp,json`) stays valid JSON: its strings are redacted one by one.
    """
    held: list[bytes] = []  # from the BEGIN of a block on, while it is open
    size = 0
    for line in lines:
        rules = RULES if rb"\u00" in line else likely(line, RULES)
        if not (rules or held):
            yield line
            continue
        head = _reach(_RAW_HEAD, line, 0)
        if _is_json(line[head:]):
            yield from _plain(held)
            held = []
            yield line[:head] + _json(line[head:], rules)
            continue
        is_open = bool(held)
        for edge in _EDGE.finditer(line):
            is_open = edge["begin"] is not None
        if is_open or held:
            size = size + len(line) if held else len(line)
            held.append(line)
            if not is_open or size > _HELD_BYTES:
                yield from _plain(held)
                held = []
        else:
            yield _marked(line, spans(line, rules))
    yield from _plain(held)


def _plain(held: list[bytes]) -> list[bytes]:
    text = b"".join(held)
    return _LINE.findall(_marked(text, spans(text)))


def _is_json(line: bytes) -> bool:
    if line.lstrip()[:1] not in (b"{", b"[", b'"'):
        return False
    try:
        orjson.loads(line)
    except ValueError:
        try:
            json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
        except (ValueError, RecursionError):
            return False
    return True


_STRING = re.compile(rb"(?:[^\"\\]++|\\.)*+", re.DOTALL)
_ASSIGNS = re.compile(rb"\s*+:\s*+(?:\[\s*+)?(?:\"|(?P<number>-?[0-9][0-9.eE+-]{3,}+))")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|.)", re.DOTALL)


def _json(text: bytes, rules: Sequence[Rule]) -> bytes:
    """Valid JSON with its strings redacted, and with what is assigned to the name of a secret."""
    changes: list[Change] = []
    worth = _strings_worth_a_look(text, rules)
    secret = False
    start = text.find(b'"') + 1
    while start:
        end = _reach(_STRING, text, start)
        if not (secret or worth(end)):
            start = text.find(b'"', end + 1) + 1
            continue
        content = _ESCAPE.sub(_unescaped, text[start:end])
        found = spans(content, rules)
        if secret:
            begin = _reach(_SCHEME, content.lower(), 0)
            hidden = _masked(content, (match.span() for match in _MARKER.finditer(content)))
            if not _NOTHING.fullmatch(hidden.lower(), begin):
                found = _joined([*found, (begin, len(content), "secret")])
        changes += _in_source(text[start:end], start, found)
        assigns = _ASSIGNS.match(text, end + 1)
        secret = assigns is not None and _KEY_NAME.search(content.lower()) is not None
        if secret and assigns and assigns["number"]:
            changes.append((*assigns.span("number"), b'"%b"' % _marker("secret")))
            secret = False
        start = text.find(b'"', end + 1) + 1
    return _changed(text, changes)


def _strings_worth_a_look(text: bytes, rules: Sequence[Rule]) -> Callable[[int], bool]:
    """Whether a needle of the rules begins before `end`, in what has not been asked for yet."""
    if rb"\u00" in text:
        return lambda end: True
    needles = re.compile(b"|".join(re.escape(needle) for rule in rules for needle in rule.needles))
    hits = (match.start() for match in needles.finditer(text.lower()))
    upcoming = next(hits, None)

    def worth(end: int) -> bool:
        nonlocal upcoming
        if upcoming is None or upcoming >= end:
            return False
        while upcoming is not None and upcoming < end:
            upcoming = next(hits, None)
        return True

    return worth


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return json.loads(b'"%b"' % escape[0]).encode("utf-8", "surrogatepass")


def _in_source(source: bytes, offset: int, found: list[Span]) -> Iterator[Change]:
    """Spans of a string's content as changes of its JSON form, which begins at `offset`."""
    if not found:
        return
    edges = deque(edge for span in found for edge in span[:2])
    places = []
    grown = 0  # by how much the source is ahead of the content
    for escape in _ESCAPE.finditer(source):
        while edges and edges[0] + grown <= escape.start():
            places.append(edges.popleft() + grown)
        grown += len(escape[0]) - len(_unescaped(escape))
    places += [edge + grown for edge in edges]
    for (_, _, kind), start, end in zip(found, places[::2], places[1::2], strict=True):
        yield offset + start, offset + end, _marker(kind)
