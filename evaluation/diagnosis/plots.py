"""The confusion matrix as a picture (extra `plots`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure


def confusion_figure(matrix: Mapping[str, Mapping[str, int]], title: str) -> Figure:
    """Truth down, diagnosis across; a cell's shade is its share of its line, its number how often."""
    truths, answers = list(matrix), list(next(iter(matrix.values()), {}))
    counts = np.array([[matrix[t][p] for p in answers] for t in truths], float).reshape(len(truths), len(answers))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    axes.set_xticks(range(len(answers)), [a.replace("_", " ") for a in answers], rotation=35, ha="right")
    axes.set_yticks(range(len(truths)), [t.replace("_", " ") for t in truths])
    axes.set_xlabel("diagnosis")
    axes.set_ylabel("truth")
    for (i, j), n in np.ndenumerate(counts):
        if n:
            axes.text(j, i, f"{n:.0f}", ha="center", va="center", color="white" if shares[i, j] > 0.5 else "black")
    figure.colorbar(image, ax=axes, label="share of the episodes with this fault", shrink=0.8)
    axes.set_title(title, fontsize="medium")
    return figure
