"""Questions to a language model that speaks chat completions, several at once, within guardrails.

What is sent is redacted first. The key goes to the named host alone: no redirect is followed, a plain connection is
never made through a proxy, and no message of ours holds it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from . import __version__
from .output import encoded
from .record import one_line
from .redact import redacted
from .stores.registry import Refused
from .terminal import clean

if TYPE_CHECKING:
    import httpx

MAX_TOKENS = 234_000  # of a prompt, estimated as its UTF-8 bytes / 4
IN_FLIGHT = 4
SECONDS = 120.0  # for one request, from connecting to the last byte of the answer
RATE_PAUSES = (1.0, 2.0, 4.0, 8.0, 10.0)  # before each retry of a 429 that names no time; no more retries than these
LONGEST_PAUSE = 10.0
SERVER_PAUSES = (1.0, 1.0, 1.0)  # before each retry of a 5xx
_ANSWER_BYTES = 8 << 20
_SHOWN = 200  # characters of a body in an error

Prompt = tuple[str, str]  # system, user
Sleep = Callable[[float], Awaitable[None]]


class ServiceFailed(Exception):
    """The model gave no usable answer; the sentence says who, with which status or cause."""


class Provider(NamedTuple):
    """Where a question goes. `extras` are further fields of the request."""

    name: str
    base_url: str
    model: str
    key: str | None
    extras: Mapping[str, Any]

    @property
    def host(self) -> str:
        """The host, with a port if one is named."""
        return urlsplit(self.base_url).netloc


class _Row(NamedTuple):
    base_url: str | None
    model: str | None
    prefix: str  # of further variables for URL and model
    key_variable: str
    key_required: bool
    extras: Mapping[str, Any]


PROVIDERS = {
    "mercury": _Row(
        *("https://api.inceptionlabs.ai/v1", "mercury-2.5", "TR_MERCURY_"),
        *("INCEPTION_API_KEY", True, {"reasoning_effort": "low"}),
    ),
    "mistral": _Row(
        *("https://api.mistral.ai/v1", "mistral-small-latest", "TR_MISTRAL_"), *("MISTRAL_API_KEY", True, {})
    ),
    "openai": _Row(None, None, "TR_LLM_", "TR_LLM_API_KEY", False, {}),
}
_WITHOUT = "everything but tr-summarise and the model's part of tr-recap works without it"


def provider(asked: str | None, environ: Mapping[str, str]) -> Provider:
    """The provider asked for, else that of `TR_LLM_PROVIDER`, else mercury.

    Raises Refused when it is unknown or not set up, naming what is missing.
    """

    def value(variable: str) -> str | None:
        return environ.get(variable, "").strip() or None

    name = asked or value("TR_LLM_PROVIDER") or "mercury"
    row = PROVIDERS.get(name)
    if row is None:
        raise Refused(f"unknown provider {name!r} - known: {', '.join(PROVIDERS)}; {_WITHOUT}")

    def setting(word: str, default: str | None) -> str:
        found = value(f"TR_{name.upper()}_{word}") or value(row.prefix + word) or default
        if found is None:
            raise Refused(f"provider {name} needs {row.prefix}{word} - set it; {_WITHOUT}")
        return found

    base_url = _checked_url(setting("BASE_URL", row.base_url), name)
    key = value(row.key_variable)
    if key is None and row.key_required:
        others = ", ".join(other for other in PROVIDERS if other != name)
        raise Refused(f"provider {name} needs {row.key_variable} - set it, or choose among {others}; {_WITHOUT}")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise Refused(f"{row.key_variable} holds characters that no key has - set it anew")
    return Provider(name, base_url, setting("MODEL", row.model), key, row.extras)


def _checked_url(text: str, name: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc or parts.query or parts.fragment or not text.isprintable() or " " in text:
        raise Refused(
            f"the base URL of provider {name} is no plain http or https URL"
            " - it looks like https://host/v1, without user, password or query"
        )
    return text.rstrip("/")


def estimated_tokens(text: str) -> int:
    """What a text costs, about: its UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def complete(
    provider: Provider,
    prompts: Sequence[Prompt],
    *,
    say: Callable[[str], None] = lambda text: None,
    sleep: Sleep | None = None,
    seconds: float = SECONDS,
) -> list[str]:
    """The model's answers, in the order of the prompts; all or none.

    `say` hears of every retry; `sleep` waits before one. Raises Refused, before anything is sent, when a prompt is
    over the cap, and ServiceFailed as soon as one fails.
    """
    return [str(answer) for answer in _asked(provider, prompts, say, sleep, seconds, True)]


def attempted(
    provider: Provider,
    prompts: Sequence[Prompt],
    *,
    say: Callable[[str], None] = lambda text: None,
    sleep: Sleep | None = None,
    seconds: float = SECONDS,
) -> list[str | ServiceFailed]:
    """As `complete`, but a prompt that fails leaves the others: its failure stands in the place of its answer."""
    return _asked(provider, prompts, say, sleep, seconds, False)


def _asked(
    provider: Provider,
    prompts: Sequence[Prompt],
    say: Callable[[str], None],
    sleep: Sleep | None,
    seconds: float,
    all_or_none: bool,
) -> list[str | ServiceFailed]:
    import asyncio

    sent = [(redacted(system), redacted(user)) for system, user in prompts]
    for index, (_, user) in enumerate(sent):
        if (tokens := estimated_tokens(user)) > MAX_TOKENS:
            raise Refused(f"prompt {index} is about {tokens} tokens, over the cap of {MAX_TOKENS} - send less at once")
    return asyncio.run(_all(_Endpoint(provider, say, sleep or asyncio.sleep, seconds), sent, all_or_none))


async def _all(endpoint: _Endpoint, prompts: list[Prompt], all_or_none: bool) -> list[str | ServiceFailed]:
    import asyncio

    places = asyncio.Semaphore(IN_FLIGHT)

    async def one(index: int, prompt: Prompt) -> str | ServiceFailed:
        async with places:
            try:
                return await endpoint.answer(prompt, f"prompt {index}: " if len(prompts) > 1 else "")
            except ServiceFailed as error:
                if all_or_none:
                    raise
                return error

    async with endpoint.client():
        tasks = [asyncio.ensure_future(one(index, prompt)) for index, prompt in enumerate(prompts)]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _Endpoint:
    """One provider's chat completions, for the length of one run."""

    def __init__(self, provider: Provider, say: Callable[[str], None], sleep: Sleep, seconds: float) -> None:
        self.provider = provider
        self.say = say
        self.sleep = sleep
        self.seconds = seconds

    def client(self) -> httpx.AsyncClient:
        import httpx

        headers = {"User-Agent": f"total-recall/{__version__}", "Accept-Encoding": "identity"}
        if self.provider.key:
            headers["Authorization"] = f"Bearer {self.provider.key}"
        # A proxy sees nothing of a TLS connection; of a plain one it would see the key.
        encrypted = self.provider.base_url.startswith("https:")
        try:
            self._client = httpx.AsyncClient(headers=headers, timeout=None, trust_env=encrypted)  # noqa: S113
        except (ImportError, OSError, ValueError) as error:
            raise ServiceFailed(f"no connection can be made: {self._safe(str(error))}") from None
        return self._client

    async def answer(self, prompt: Prompt, label: str) -> str:
        """The model's text; asks again after a 429 or a 5xx, each within a budget of its own."""
        budgets = {429: list(RATE_PAUSES), 500: list(SERVER_PAUSES)}
        who = label + self.provider.host
        while True:
            status, headers, body = await self._post(prompt, who)
            pauses = budgets.get(500 if status >= 500 else status)
            if pauses is None:
                return self._text(who, status, headers, body)
            tries = len(RATE_PAUSES if status == 429 else SERVER_PAUSES)
            if not pauses:
                raise ServiceFailed(f"{who} answered {status}, also after {tries} retries{self._start(body)}")
            pause = pauses.pop(0)
            if status == 429:
                pause = _asked_pause(headers.get("retry-after", ""), pause)
            self.say(f"{who} answered {status}, retry {tries - len(pauses)} of {tries} in {pause:g} s")
            await self.sleep(pause)

    async def _post(self, prompt: Prompt, who: str) -> tuple[int, Mapping[str, str], bytes]:
        import asyncio

        import httpx

        system, user = prompt
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        asked = {"model": self.provider.model, "messages": messages, "temperature": 0.1, "max_tokens": 4000}
        request = self._client.build_request(
            "POST",
            f"{self.provider.base_url}/chat/completions",
            content=encoded({**asked, **self.provider.extras}),
            headers={"Content-Type": "application/json"},
        )
        try:
            async with asyncio.timeout(self.seconds):
                response = await self._client.send(request, stream=True, follow_redirects=False)
                body = bytearray()
                try:
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > _ANSWER_BYTES:
                            raise ServiceFailed(f"{who} answered more than {_ANSWER_BYTES} bytes")
                finally:
                    await response.aclose()
        except TimeoutError:
            raise ServiceFailed(f"{who} gave no whole answer within {self.seconds:g} s") from None
        except (httpx.HTTPError, OSError) as error:
            cause = self._safe(str(error)) or "the connection broke"
            raise ServiceFailed(f"{who} cannot be asked: {type(error).__name__}: {cause}") from None
        return response.status_code, response.headers, bytes(body)

    def _text(self, who: str, status: int, headers: Mapping[str, str], body: bytes) -> str:
        if 300 <= status < 400:
            host = urlsplit(self._safe(headers.get("location", ""))).netloc or "nowhere"
            raise ServiceFailed(f"{who} answered {status}, a redirect to {host}, which is not followed")
        if not 200 <= status < 300:
            raise ServiceFailed(f"{who} answered {status}{self._start(body)}")
        try:
            text = orjson.loads(body)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError):
            raise ServiceFailed(f"{who} answered without choices[0].message.content{self._start(body)}") from None
        if text is not None and not isinstance(text, str):
            raise ServiceFailed(f"{who} answered with something else than text{self._start(body)}")
        text = clean(text or "").strip()
        if not text:
            raise ServiceFailed(f"{who} answered with an empty text{self._start(body)}")
        return text

    def _start(self, body: bytes) -> str:
        start = self._safe(body.decode("utf-8", "replace"))
        return f": {start}" if start else ""

    def _safe(self, text: str) -> str:
        """The start of a foreign text, for a message: without credentials, ours above all, and on one line."""
        text = clean(text)
        if self.provider.key:
            text = text.replace(self.provider.key, "[REDACTED:vendor-key]")
        return one_line(" ".join(redacted(text).split()), _SHOWN)


def _asked_pause(retry_after: str, default: float) -> float:
    """The seconds that Retry-After names, within bounds; a date or nonsense is none."""
    digits = retry_after.strip()
    return min(float(digits), LONGEST_PAUSE) if digits.isascii() and digits.isdigit() else default
