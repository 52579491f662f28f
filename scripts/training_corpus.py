#!/usr/bin/env python3
"""Text, tokenizers and token streams for training small models, under data/cache/training/.

scripts/fetch_data --training calls this file:

  check     exit code 0 when everything is there and valid
  packages  names the Debian packages that the text is in
  write     makes what is missing from the unpacked packages

For each vocabulary size V two streams in the format of tokenize_corpora.py: bpeV-train and
bpeV-heldout, made by the tokenizer bpeV.json, which is trained on the training text alone. The
token <|end|> (id 0) begins every document. The header has, beside the usual keys, `sources` (package,
documents, tokens, bytes) and per document `document_sources` (an index into it) and
`document_bytes`, so that losses can be given per source and in bits per byte.

A document is held out by a digest of its name, as a whole. Then documents are cut into pieces of
about 16 KiB, which are written in the order of a digest: a large package does not make a stretch of
the stream its own. Pieces that are mostly tables are left out, since n-grams gain more on them than
on running text; their share is in the header. The result depends on package versions alone.
"""
import argparse
import array
import hashlib
import json
import os
import re
import sys
from pathlib import Path

from tokenize_corpora import (FORMAT, bible_chapters, cxx_headers, dictionary_sections, files, html_text,
                              kernel_docs, newlib_sources, package_version, perl_pods, perl_sources,
                              python_sources, sha256_file)

RECIPE = 1  # raise it when what this file writes changes
VOCABULARIES = (4096, 8192)
END = "<|end|>"
PIECE_BYTES = 16384
MIN_DOCUMENT_BYTES = 400
HELDOUT_SHARE = 0.02
TABLE_SHARE = 0.3  # of a piece's lines: more, and the piece is left out
BATCH = 256


def english_guide(root):
    return files(root, "usr/share/doc/installation-guide-amd64/en", (".html",), html_text,
                 leave_out=r"/index\.html")


# (package, most bytes of it, reader). Code is limited to about a fifth: it has many long copies.
SOURCES = [
    ("bible-kjv-text", 10 << 20, bible_chapters),
    ("dict-gcide", 50 << 20, dictionary_sections),
    ("linux-doc-6.1", 50 << 20, kernel_docs),
    ("perl-doc", 10 << 20, perl_pods),
    ("installation-guide-amd64", 10 << 20, english_guide),
    ("newlib-source", 6 << 20, newlib_sources),
    ("libpython3.11-stdlib", 5 << 20, python_sources),
    ("libstdc++-12-dev", 4 << 20, cxx_headers),
    ("perl-modules-5.36", 5 << 20, perl_sources),
]


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).digest()


def is_held_out(package, name):
    return int.from_bytes(digest("held out", package, name)[:4], "big") < HELDOUT_SHARE * 2**32


def pieces(text):
    """Runs of whole lines of about PIECE_BYTES; a rest too short to stand alone joins the last one."""
    start, out = 0, []
    while start < len(text):
        cut = text.find("\n", start + PIECE_BYTES) + 1
        if cut == 0 or len(text) - cut < MIN_DOCUMENT_BYTES:
            cut = len(text)
        out.append(text[start:cut])
        start = cut
    return out


TABLE_LINE = re.compile(r"\S(?: {3,}|\t+)\S.*\S(?: {3,}|\t+)\S|\|.*\||[-=+]{12,}")


def is_table_line(line):
    return bool(TABLE_LINE.search(line)) or sum(map(str.isalpha, line)) * 2 < len(line.replace(" ", ""))


def is_table(text):
    lines = [line for line in text.split("\n") if line.strip()]
    return sum(map(is_table_line, lines)) > TABLE_SHARE * max(1, len(lines))


def read_source(cache, package, most, reader):
    """([(rank, held out, text)], bytes left out as tables), documents in the order of a digest."""
    documents = sorted((digest(package, name), name, text) for name, text in reader(cache / "pkg" / package)
                       if len(text.encode()) >= MIN_DOCUMENT_BYTES)
    if not documents:
        raise ValueError(f"package {package} holds no text where it is looked for")
    seen, taken, total, tables = set(), [], 0, 0
    for _, name, text in documents:
        if total >= most:
            break
        same = hashlib.sha256(text.encode()).digest()
        if same in seen:
            continue  # copies of a file would be read twice, and across the split
        seen.add(same)
        for number, piece in enumerate(pieces(text)):
            size = len(piece.encode())
            if is_table(piece):
                tables += size
                continue
            total += size
            taken.append((digest("order", package, name, str(number)), is_held_out(package, name), piece))
    return taken, tables


def read_all(cache):
    """{"train": [(rank, source, text)], "heldout": ...} in order, and a row per source."""
    parts, rows = {"train": [], "heldout": []}, []
    for source, (package, most, reader) in enumerate(SOURCES):
        taken, tables = read_source(cache, package, most, reader)
        kept = sum(len(text.encode()) for _, _, text in taken)
        rows.append({"package": package, "version": package_version(cache / "pkg" / package),
                     "left_out_as_tables": round(tables / (kept + tables), 4)})
        for rank, held_out, text in taken:
            parts["heldout" if held_out else "train"].append((rank, source, text))
        print(f"fetch_data: training: {package}: {kept / 1e6:.1f} MB, {tables / 1e6:.1f} MB of tables left out",
              file=sys.stderr)
    for part in parts.values():
        part.sort()
    return parts, rows


def train_tokenizer(texts, vocabulary):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    if tokenizer.get_vocab_size() != vocabulary:
        raise ValueError(f"the text gives {tokenizer.get_vocab_size()} tokens, not {vocabulary}")
    return tokenizer


def replace(path, content):
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def write_stream(folder, name, tokenizer, tokenizer_path, documents, rows):
    end = tokenizer.token_to_id(END)
    ids, starts, sizes = array.array("I"), [], []
    for at in range(0, len(documents), BATCH):
        batch = documents[at:at + BATCH]
        encoded = tokenizer.encode_batch_fast([text for _, _, text in batch], add_special_tokens=False)
        for (_, _, text), code in zip(batch, encoded):
            starts.append(len(ids))
            sizes.append(len(text.encode()))
            ids.append(end)
            ids.extend(code.ids)
    if sys.byteorder == "big":
        ids.byteswap()
    data = ids.tobytes()
    owners = [source for _, source, _ in documents]
    ends = starts[1:] + [len(ids)]
    sources = []
    for source, row in enumerate(rows):
        mine = [i for i, owner in enumerate(owners) if owner == source]
        sources.append({**row, "documents": len(mine), "tokens": sum(ends[i] - starts[i] for i in mine),
                        "bytes": sum(sizes[i] for i in mine)})
    head = {
        "format": FORMAT, "recipe": RECIPE, "corpus": name, "kind": "real", "ids_file": f"{name}.ids",
        "n_tokens": len(ids), "vocab_ids": tokenizer.get_vocab_size(),
        "tokenizer": {"name": tokenizer_path.name, "sha256": sha256_file(tokenizer_path)},
        "sources": sources, "sha256": hashlib.sha256(data).hexdigest(), "document_starts": starts,
        "document_sources": owners, "document_bytes": sizes,
    }
    replace(folder / f"{name}.ids", data)
    replace(folder / f"{name}.json", (json.dumps(head) + "\n").encode())
    print(f"fetch_data: training: {name}: {len(ids)} tokens, {sum(sizes) / len(ids):.3f} bytes per token",
          file=sys.stderr)


def is_valid(folder, vocabulary):
    try:
        tokenizer = sha256_file(folder / f"bpe{vocabulary}.json")
        for part in ("train", "heldout"):
            head = json.loads((folder / f"bpe{vocabulary}-{part}.json").read_text())
            ids = folder / head["ids_file"]
            if (head["format"] != FORMAT or head["recipe"] != RECIPE or head["tokenizer"]["sha256"] != tokenizer
                    or ids.stat().st_size != 4 * head["n_tokens"] or sha256_file(ids) != head["sha256"]):
                return False
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("action", choices=["check", "packages", "write"])
    args = parser.parse_args()
    folder = args.cache / "training"
    missing = [v for v in VOCABULARIES if not is_valid(folder, v)]
    if args.action == "packages":
        print("\n".join(["bible-kjv", *(package for package, _, _ in SOURCES)]))
        return 0
    if args.action == "check" or not missing:
        return 1 if missing else 0
    folder.mkdir(parents=True, exist_ok=True)
    try:
        parts, rows = read_all(args.cache)
        for vocabulary in missing:
            path = folder / f"bpe{vocabulary}.json"
            tokenizer = train_tokenizer((text for _, _, text in parts["train"]), vocabulary)
            replace(path, tokenizer.to_str().encode())
            for part, documents in parts.items():
                write_stream(folder, f"bpe{vocabulary}-{part}", tokenizer, path, documents, rows)
    except (OSError, ValueError) as error:
        print(f"fetch_data: training: not made: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
