# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy>=2", "scipy", "scikit-learn", "threadpoolctl"]
# ///
"""Build the package's Debian graph from the package indices of a Debian release.

Nodes are the binary packages of main/amd64, edges the relations between them, labels their
sections, features a latent semantic analysis of their English descriptions.

Needs a Debian machine whose apt sources name the suite; apt works on a private state. Two runs on
one archive snapshot with the same library versions write the same bytes.
"""

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[1]
DATA_FILE = ROOT / "src/graphfm/data/debian.npz"
APT_STATE = ROOT / ".cache/apt"
RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances")
SMALLEST_CLASS = 100
DIMENSIONS = 128
LEVELS = 63  # 127, all of int8, would make the file a tenth larger
FIELD = re.compile(r"^([!-9;-~]+):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)
# What looks like a package name, version, path or module rather than a word.
NAME_LIKE = re.compile(r"\S*[0-9]\S*|\S+-\S+|\S*::\S*|\S+/\S+|\S+_\S+")

Stanza = dict[str, str]
Arrays = dict[str, np.ndarray]


class BuildError(Exception):
    """A failure the user can act on, told in one line."""


def run_apt(cache: Path, *arguments: str) -> str:
    """Run apt-get on the private state under `cache` and return what it prints."""
    settings = (
        f"Dir::State::lists={cache}/lists",
        f"Dir::Cache={cache}",
        "Acquire::Languages=en",
        "Acquire::GzipIndexes=false",
        "APT::Sandbox::User=root",
        "APT::Update::Error-Mode=any",
    )
    command = ["apt-get", *(f"-o{setting}" for setting in settings), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BuildError(f"apt-get failed: {' '.join(result.stderr.split())}")
    return result.stdout


def archive_address(cache: Path, suite: str) -> str:
    """Return the address under which the machine's apt sources hold `suite`."""
    planned = run_apt(cache, "update", "--print-uris")
    match = re.search(rf"'(\S+)/dists/{re.escape(suite)}/InRelease'", planned)
    if match is None:
        raise BuildError(f"no apt source of this machine names the suite '{suite}'")
    return match.group(1)


def fetch_indices(cache: Path, suite: str) -> dict[str, str]:
    """Bring the private copy of the main/amd64 indices up to date; return their text by kind."""
    if shutil.which("apt-get") is None:
        raise BuildError("apt-get not found: this script needs a Debian machine")
    (cache / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    sources = cache / "debian.list"
    sources.write_text(f"deb [arch=amd64] {archive_address(cache, suite)} {suite} main\n")
    only = (f"-oDir::Etc::SourceList={sources}", f"-oDir::Etc::SourceParts={os.devnull}")
    run_apt(cache, *only, "update")
    texts = {}
    for kind in ("InRelease", "Packages", "Translation-en"):
        found = list((cache / "lists").glob(f"*_{kind}"))
        if len(found) != 1:
            raise BuildError(f"expected one {kind} index from apt, found {len(found)}")
        texts[kind] = found[0].read_text(encoding="utf-8", errors="replace")
    return texts


def parse_stanzas(text: str) -> list[Stanza]:
    """Split an index into its stanzas, each a mapping from field to value."""
    return [stanza for block in text.split("\n\n") if (stanza := dict(FIELD.findall(block)))]


def related_names(relation: str) -> list[str]:
    """Return the package names of a relation field, alternatives included."""
    return re.findall(r"(?:^|[,|])\s*([^\s(:\[,|]+)", relation)


def build_edges(packages: list[Stanza]) -> np.ndarray:
    """Return both directions of every relation, sorted by source, then target; no loops."""
    providers: defaultdict[str, set[int]] = defaultdict(set)
    for node, package in enumerate(packages):
        for name in related_names(package.get("Provides", "")):
            providers[name].add(node)
    resolve = {name: min(nodes) for name, nodes in providers.items() if len(nodes) == 1}
    resolve |= {package["Package"]: node for node, package in enumerate(packages)}
    pairs = [
        (node, resolve[name])
        for node, package in enumerate(packages)
        for relation in RELATIONS
        for name in related_names(package.get(relation, ""))
        if resolve.get(name, node) != node
    ]
    source, target = np.array(pairs, dtype=np.int64).T
    count = len(packages)
    keys = np.unique(np.concatenate([source * count + target, target * count + source]))
    return np.stack(np.divmod(keys, count)).astype(np.int32)


def build_labels(sections: list[str]) -> tuple[np.ndarray, list[str]]:
    """Number the sections in order of name, the small ones merged into 'other'."""
    sizes = Counter(sections)
    merged = [name if sizes[name] >= SMALLEST_CLASS else "other" for name in sections]
    classes, labels = np.unique(merged, return_inverse=True)
    return labels.astype(np.int16), classes.tolist()


def build_texts(packages: list[Stanza], translations: list[Stanza], banned: set[str]) -> list[str]:
    """Return the words of every package's long description that name no package or section."""
    long_text = {entry["Description-md5"]: entry["Description-en"] for entry in translations}
    texts = []
    for package in packages:
        text = long_text.get(package.get("Description-md5", ""), package.get("Description", ""))
        words = re.findall("[a-z]{2,}", NAME_LIKE.sub(" ", text.lower()))
        texts.append(" ".join(word for word in words if word not in banned))
    return texts


def build_features(texts: list[str]) -> np.ndarray:
    """Embed the texts by TF-IDF and a truncated SVD; rows have length sqrt(DIMENSIONS)."""
    vectorizer = TfidfVectorizer(
        min_df=5, max_df=0.5, max_features=30_000, sublinear_tf=True, stop_words="english"
    )
    weights = vectorizer.fit_transform(texts)
    with threadpool_limits(1):  # the order of sums, and so the bytes, must not vary with the cores
        embedded = TruncatedSVD(DIMENSIONS, n_iter=7, random_state=0).fit_transform(weights)
    lengths = np.linalg.norm(embedded, axis=1, keepdims=True)
    return embedded / np.maximum(lengths, 1e-8) * np.sqrt(DIMENSIONS)


def quantise(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round every column to whole multiples of a scale that reaches its largest value."""
    scale = (np.abs(features).max(axis=0) / LEVELS).astype(np.float32)
    return np.rint(features / scale).astype(np.int8), scale


def build_split(count: int) -> Arrays:
    """Draw the random 50/25/25 masks."""
    order = np.random.default_rng(0).permutation(count)
    parts = np.split(order, [int(0.5 * count), int(0.75 * count)])
    names = ("train_mask", "val_mask", "test_mask")
    return {name: np.isin(np.arange(count), part) for name, part in zip(names, parts, strict=True)}


def build_graph(indices: dict[str, str], suite: str) -> tuple[Arrays, np.ndarray]:
    """Return the arrays of the data file, and the features before quantisation."""
    by_name = {entry["Package"]: entry for entry in parse_stanzas(indices["Packages"])}
    packages = [by_name[name] for name in sorted(by_name)]
    sections = [package.get("Section", "unknown").split("/")[-1] for package in packages]
    labels, classes = build_labels(sections)
    section_words = {word for name in set(sections) for word in re.split("[-_]", name)}
    texts = build_texts(packages, parse_stanzas(indices["Translation-en"]), section_words)
    features = build_features(texts)
    quantised, scale = quantise(features)
    release = dict(FIELD.findall(indices["InRelease"]))
    meta = describe(release, suite) | {"labels": classes, "names": sorted(by_name)}
    arrays = {"edge_index": build_edges(packages), "x": quantised, "x_scale": scale, "y": labels}
    return arrays | build_split(len(packages)) | {"meta": np.array(json.dumps(meta))}, features


def describe(release: Stanza, suite: str) -> dict[str, str]:
    """Return the description stored in the file."""
    return {
        "name": "debian",
        "source": f"Debian {release.get('Version')} ({suite}) main/amd64 Packages + Translation-en "
        f"indices, Release dated {release.get('Date')}",
        "nodes": "binary packages, sorted by name",
        "edges": f"{'|'.join(RELATIONS)}, alternatives and single-provider virtual packages "
        "resolved; both directions, coalesced, no self-loops, sorted by source",
        "features": "long description, section words and package-name-like tokens removed, "
        f"TF-IDF -> SVD {DIMENSIONS}, unit rows * sqrt({DIMENSIONS}), quantised",
        "quantisation": f"x * x_scale; x_scale is the column's largest absolute value / {LEVELS}",
        "split": "random 50/25/25, numpy default_rng(0)",
        "license": "facts of the package index (names, relations, sections); descriptions are the "
        "packagers', under each package's free licence; only numbers derived from them are stored",
        "built_by": "tools/build_debian_graph.py",
    }


def write_npz(path: Path, arrays: Arrays) -> None:
    """Write a compressed npz with fixed timestamps, beside `path` first, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    with zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980-01-01
            archive.writestr(entry, buffer.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    partial.replace(path)


def report(path: Path) -> None:
    """Read the file back and print what it holds."""
    with np.load(path, allow_pickle=False) as data:
        meta = json.loads(data["meta"].item())
        (source, target), labels = data["edge_index"], data["y"]
    degrees = np.bincount(source, minlength=len(labels))
    print(f"{meta['source']}\n{path}: {path.stat().st_size} bytes, {len(meta['labels'])} classes")
    print(f"{len(labels)} nodes ({np.sum(degrees == 0)} isolated), {len(source)} edges")
    print(f"edge homophily {np.mean(labels[source] == labels[target]):.4f}")
    print(f"degree mean {degrees.mean():.2f}, median {np.median(degrees):g}, max {degrees.max()}")


def main() -> None:
    """Build the file the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=DATA_FILE, help="data file to write")
    parser.add_argument("--cache", type=Path, default=APT_STATE, help="private apt state")
    parser.add_argument("--suite", default="bookworm", help="Debian suite (default: %(default)s)")
    parser.add_argument("--float-out", type=Path, help="also save the graph unquantised")
    options = parser.parse_args()
    try:
        indices = fetch_indices(options.cache.resolve(), options.suite)
        arrays, features = build_graph(indices, options.suite)
        write_npz(options.out, arrays)
        if options.float_out:
            del arrays["x_scale"]
            write_npz(options.float_out, arrays | {"x": features.astype(np.float32)})
    except (BuildError, OSError) as error:
        parser.exit(1, f"error: {error}\n")
    report(options.out)


if __name__ == "__main__":
    main()
