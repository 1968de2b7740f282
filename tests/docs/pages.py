"""Reading the project's Markdown: its code blocks, its links, its headings."""

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(`{3,}|~{3,})\s*([\w+-]*)\s*$")
_NORUN = re.compile(r"^<!-- norun: (.+) -->$")
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_SOURCE = re.compile(r"\bsrc(?:set)?=\"([^\"]+)\"")


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of code."""

    path: str
    line: int
    """Of the fence that opens it, from 1."""
    language: str
    code: str
    norun: str = ""
    """Why it is not run, if the page says so on the line above it."""


def pages() -> list[Path]:
    """Every page that speaks to users or contributors."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a page, in order. A fence that is never closed is an error."""
    found: list[Block] = []
    lines = path.read_text().splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number].strip())
        if opening:
            first = number
            while lines[number := number + 1].strip() != opening.group(1):
                if number == len(lines) - 1:
                    raise ValueError(f"{path}:{first + 1}: this block is never closed")
            marker = _NORUN.match(lines[first - 1].strip()) if first else None
            found.append(
                Block(
                    path=str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name,
                    line=first + 1,
                    language=opening.group(2),
                    code="\n".join(lines[first + 1 : number]) + "\n",
                    norun=marker.group(1) if marker else "",
                )
            )
        number += 1
    return found


def prose(path: Path) -> str:
    """The page without its blocks of code and its code spans."""
    return re.sub(r"`[^`\n]*`", "code", _without_blocks(path))


def links(path: Path) -> list[str]:
    """Where the page's links and pictures lead."""
    text = prose(path)
    return [*_LINK.findall(text), *_SOURCE.findall(text)]


def anchors(path: Path) -> set[str]:
    """The fragments that headings of the page can be reached by."""
    return {_slug(heading) for heading in sections(path)}


def sections(path: Path) -> dict[str, str]:
    """The text under each heading, up to the next heading of any level, without its blocks of code."""
    parts = re.split(r"^#+ (.+?)\s*$", _without_blocks(path), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _without_blocks(path: Path) -> str:
    return re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def _slug(heading: str) -> str:
    text = unicodedata.normalize("NFKD", heading.replace("`", "")).encode("ascii", "ignore").decode()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())
