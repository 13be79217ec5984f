"""The model of the whole fleet's residuals: half-space trees, and quantiles that make sigmas of their scores."""
