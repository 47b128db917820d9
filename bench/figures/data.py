"""The paper's three data sets, from a directory that the user names, and the scores of a logistic regression on them.

The model is not the point: any scores do. Each is rounded up to a grid of 4001 scores and kept beside its label.
"""

import gzip
import hashlib
import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.figures.figure import MissingData
from fss_ecdf.campaign.campaign import Campaign

STEP = 0.00025
STRATA = ("negative", "positive")


@dataclass(frozen=True)
class Source:
    """A file, what its CSV must hash to, and how to read labels from it."""

    title: str
    file: str
    sha256: str
    separator: str
    label: str
    positive: tuple[str, ...]
    ignored: tuple[str, ...] = ()


SOURCES = {
    "heart": Source(
        "Heart disease",
        "framingham.csv",
        "40921748dbdf6587045b9822414199a1ae3349358b63b975ab2208aa3cccc45b",
        ",",
        "TenYearCHD",
        ("1",),
    ),
    "bank": Source(
        "Bank",
        "bank-full.csv",
        "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
        ";",
        "y",
        ("yes",),
    ),
    "diabetes": Source(
        "Diabetes",
        "diabetic_data.csv",
        "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97",
        ",",
        "readmitted",
        (">30", "<30"),
        ("encounter_id", "patient_nbr"),
    ),
}


@dataclass(frozen=True)
class Scored:
    """Scores on the grid, as indices of the campaign's positions, and labels."""

    campaign: Campaign
    positions: NDArray[np.int64]
    scores: NDArray[np.float64]
    labels: NDArray[np.bool_]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The true curve over all positions."""
        return np.cumsum(np.bincount(self.positions, minlength=1 << self.campaign.bits))


def campaign(mechanism: str, epsilon: float, strata: tuple[str, ...] = STRATA) -> Campaign:
    grid = {"kind": "linear", "from": 0.0, "to": 1.0, "step": STEP}
    about = {"id": bytes(32), "title": "Figures of the paper", "question": "Which score, and which label?"}
    variable = {"name": "score", "grid": grid, "mechanism": mechanism}
    return Campaign.from_dict({**about, "variables": [variable], "strata": list(strata), "epsilon": epsilon})


def read_text(name: str, folder: Path | None) -> str:
    """The CSV, plain or compressed, checked against its checksum."""
    source = SOURCES[name]
    present = [] if folder is None else [p for p in (folder / source.file, folder / f"{source.file}.gz") if p.exists()]
    if not present:
        where = "no --data-dir was given" if folder is None else f"{source.file} is not in {folder}"
        raise MissingData(f"{source.title}: {where}; docs/benchmarks.md says where to get it")
    data = gzip.decompress(present[0].read_bytes()) if present[0].suffix == ".gz" else present[0].read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != source.sha256:
        raise MissingData(f"{source.title}: {present[0].name} is another version (sha256 {digest[:16]}...)")
    return data.decode()


@lru_cache(maxsize=8)
def load(name: str, folder: Path | None) -> Scored:
    """Scores of a logistic regression, fitted to the whole data set, as the paper does."""
    import pandas as pd

    source = SOURCES[name]
    frame = pd.read_csv(io.StringIO(read_text(name, folder)), sep=source.separator, dtype=str, keep_default_na=False)
    labels = frame[source.label].isin(source.positive).to_numpy()
    scores = _fit(frame.drop(columns=[source.label, *source.ignored]), labels)
    spec = campaign("slice-tree", 1.0)
    placed = spec.to_positions(scores, np.where(labels, STRATA[1], STRATA[0]).tolist())
    on_grid = spec.variable.grid.all_thresholds[placed.positions & ((1 << spec.variable.index_bits) - 1)]
    return Scored(spec, placed.positions, on_grid, labels)


def _fit(features: Any, labels: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Numbers are scaled, with missing ones at the median; words become indicators of the frequent ones."""
    import pandas as pd
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = {c: pd.to_numeric(features[c].where(features[c] != "NA"), errors="coerce") for c in features.columns}
    numeric = [c for c, column in numbers.items() if column.notna().mean() > 0.5 and column.nunique() > 2]
    table = features.assign(**{c: numbers[c] for c in numeric})
    prepare = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numeric),
            ("words", OneHotEncoder(min_frequency=100), [c for c in table.columns if c not in numeric]),
        ]
    )
    model = make_pipeline(prepare, LogisticRegression(max_iter=2000))
    return np.asarray(model.fit(table, labels).predict_proba(table)[:, 1])
