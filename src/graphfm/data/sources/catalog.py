"""The datasets of the paper: where their files come from, and how they are prepared.

File names and addresses are those of PyG (GraphSAINT's files) and of OGB. Neither publishes sizes
or checksums, so none are listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graphfm.data.sources.preparation import AS_GIVEN, BOTH, GIVEN, SYMMETRIC, Preparation
from graphfm.errors import InputError, did_you_mean

DRIVE = "https://drive.usercontent.google.com/download?id={}&confirm=t"
OGB = "http://snap.stanford.edu/ogb/data/nodeproppred/{}.zip"
SAINT_FILES = ("adj_full.npz", "feats.npy", "class_map.json", "role.json")
TABLES = tuple(
    f"raw/{name}.csv.gz"
    for name in ("num-node-list", "num-edge-list", "node-feat", "node-label", "edge")
)
ARRAYS = ("raw/data.npz", "raw/node-label.npz")
RAW = "raw"  # NAME:raw names the dataset without preparation


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file to download: its path in the folder of the dataset, address, size and checksum."""

    path: str
    url: str
    num_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """The size of a dataset as the paper or the publisher prints it."""

    nodes: int
    edges: int  # in Table 1 as the paper counts them, otherwise as the files hold them
    features: int
    classes: int
    split: tuple[float, float, float]  # shares of all nodes: train, validation, test


@dataclass(frozen=True, kw_only=True)
class Source:
    """A dataset: its files, where they come from, and how a graph is made from them.

    `files` are the paths that the reader of `form` reads, inside the folder of the dataset. OGB
    packs them into one archive, which is then the only download.
    """

    name: str
    about: str
    form: str  # "graphsaint", "ogb-tables" or "ogb-arrays": see `data/sources/raw`
    downloads: tuple[Download, ...]
    files: tuple[str, ...]
    published: Statistics  # by the publisher of the files
    paper: Statistics | None = None  # Table 1
    counted_once: bool = False  # the paper counts an undirected edge once, the files hold two
    split: str = ""  # name of OGB's folder with the split
    preparation: Preparation = AS_GIVEN
    remark: str = ""  # known differences between the paper and the files

    @property
    def base(self) -> str:
        """The name without ':raw', which is also the name of the folder with the files."""
        return self.name.partition(":")[0]

    @property
    def archive(self) -> Download | None:
        """The archive that holds all files; None if they are downloaded one by one."""
        only = self.downloads[0]
        return only if only.path.endswith(".zip") else None


def find(name: str) -> Source:
    """Return the dataset called NAME or NAME:raw."""
    base, _, variant = name.partition(":")
    if base not in CATALOG or variant not in ("", RAW):
        raise InputError(
            f"unknown dataset of the paper {name!r}; choose one of {', '.join(CATALOG)}, or "
            f"NAME:raw{did_you_mean(base, CATALOG)}"
        )
    source = CATALOG[base]
    return replace(source, name=name, preparation=AS_GIVEN) if variant else source


def _saint(name: str, ids: tuple[str, str, str, str], **known: object) -> Source:
    paths = [f"raw/{file}" for file in SAINT_FILES]
    downloads = tuple(
        Download(path=path, url=DRIVE.format(key)) for path, key in zip(paths, ids, strict=True)
    )
    return Source(
        name=name, form="graphsaint", downloads=downloads, files=tuple(paths), **known  # type: ignore[arg-type]
    )  # fmt: skip


def _ogb(name: str, archive: str, split: str, **known: object) -> Source:
    binary = archive.endswith("-bin")
    parts = (f"split/{split}/{part}.csv.gz" for part in ("train", "valid", "test"))
    return Source(
        name=name,
        form="ogb-arrays" if binary else "ogb-tables",
        downloads=(Download(path=f"{archive}.zip", url=OGB.format(archive)),),
        files=(*(ARRAYS if binary else TABLES), *parts),
        split=split,
        **known,  # type: ignore[arg-type]
    )


CATALOG: Mapping[str, Source] = {
    source.name: source
    for source in (
        _saint(
            "flickr",
            ("1crmsTbd1-2sEXsGwa2IKnIB7Zd3TmUsy", "1join-XdvX3anJU_MLVtick7MgeAQiWIZ",
             "1uxIkbtg5drHTsKt-PAsZZ4_yJmgFmle9", "1htXCtuktuCW8TR8KiKfrFDAxUgekQoV7"),
            about="89 thousand images on Flickr, linked by shared properties, 7 classes",
            published=Statistics(
                nodes=89_250, edges=899_756, features=500, classes=7, split=(0.5, 0.25, 0.25)),
            paper=Statistics(
                nodes=89_250, edges=899_756, features=500, classes=7, split=(0.5, 0.25, 0.25)),
        ),
        _saint(
            "reddit",
            ("1sncK996BM5lpuDf75lDFqCiDZyErc1c2", "1ZsHaJ0ussP1W722krmEIp_8pwKAoi5b3",
             "1JF3Pjv9OboMNYs2aXRQGbJbc4t_nDd5u", "1nJIKd77lcAGU4j-kVNx_AIGEkveIKz3A"),
            about="233 thousand posts on Reddit, 41 classes; GraphSAINT's sparse version (Reddit2)",
            preparation=Preparation(edges=GIVEN, standardised=True),
            published=Statistics(
                nodes=232_965, edges=23_213_838, features=602, classes=41, split=(0.66, 0.1, 0.24)),
            paper=Statistics(
                nodes=232_965, edges=11_606_919, features=602, classes=41, split=(0.66, 0.1, 0.24)),
            counted_once=True,
        ),
        _saint(
            "yelp",
            ("1Juwx8HtDwSzmVIJ31ooVa1WljI4U5JnA", "1Zy6BZH_zLEjKlEFSduKE5tV9qqA_8VtM",
             "1VUcBGr0T0-klqerjAjxRmAqFuld_SMWU", "1NI5pa5Chpd-52eSmLW60OnB3WS5ikxq_"),
            about="717 thousand users of Yelp and their friends, 100 labels, many per node",
            preparation=Preparation(edges=GIVEN, standardised=True),
            published=Statistics(
                nodes=716_847, edges=13_954_819, features=300, classes=100,
                split=(0.75, 0.15, 0.1)),
            paper=Statistics(
                nodes=716_847, edges=6_997_410, features=300, classes=50, split=(0.75, 0.15, 0.1)),
            counted_once=True,
            remark="the paper prints 50 classes, but the files hold 100; it prints 6,997,410 "
            "edges, but half of the 13,954,819 in the files is 6,977,409.5",
        ),
        _ogb(
            "arxiv", "arxiv", "time",
            about="169 thousand papers on arXiv and their citations, 40 classes (ogbn-arxiv)",
            preparation=Preparation(edges=SYMMETRIC),
            published=Statistics(
                nodes=169_343, edges=1_166_243, features=128, classes=40,
                split=(90_941 / 169_343, 29_799 / 169_343, 48_603 / 169_343)),
            paper=Statistics(
                nodes=169_343, edges=1_166_243, features=128, classes=40,
                split=(0.537, 0.176, 0.287)),
        ),
        _ogb(
            "products", "products", "sales_ranking",
            about="2.4 million products on Amazon, bought together, 47 classes (ogbn-products)",
            preparation=Preparation(edges=BOTH),
            published=Statistics(
                nodes=2_449_029, edges=61_859_140, features=100, classes=47,
                split=(0.08, 0.02, 0.90)),
            paper=Statistics(
                nodes=2_449_029, edges=61_859_140, features=100, classes=47,
                split=(0.10, 0.02, 0.88)),
            remark="the paper rounds the shares of the split; OGB trains on 8 % of the nodes",
        ),
        _ogb(
            "papers100m", "papers100M-bin", "time",
            about="111 million papers and their citations, 172 classes (ogbn-papers100M)",
            preparation=Preparation(edges=SYMMETRIC),
            published=Statistics(
                nodes=111_059_956, edges=1_615_685_872, features=128, classes=172,
                split=(1_207_179 / 111_059_956, 125_265 / 111_059_956, 214_338 / 111_059_956)),
            remark="this dataset is not in the paper",
        ),
    )
}  # fmt: skip
