"""Frames in and out, by way of narwhals: pandas, Polars, pyarrow and everything that speaks Arrow; none is required."""
