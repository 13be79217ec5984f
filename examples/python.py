# %% [markdown]
# # From a frame to alarms
# Watchkeeper from Python, on made-up traffic: no broker, no daemon. Re-run with `make notebook`.

# %%
import polars as pl

import watchkeeper as wk

# %% [markdown]
# A minute with a conflict, drones whose GPS is spoofed and a stream that stops, as a frame: one row per sample.

# %%
flights = wk.simulate("demo", seed=1, seconds=90).to_frame("polars")
flights = flights.with_columns(pl.from_epoch((pl.col("t") * 1000).cast(pl.Int64), "ms"))
flights.select("t", "id", "kind", "lat", "lon", "alt_ft", "gps_x", "imu_ax").head()

# %% [markdown]
# One call, and the alarms. The last line says what could not be judged, and why: silence means that all is well only
# where somebody looked.

# %%
alarms = wk.watch(flights)
alarms

# %% [markdown]
# As a frame, of the library that the input was of, with times as they were there.

# %%
alarms.to_frame().select("kind", "subjects", "severity", "t_raised", "t_cleared", "peak")

# %% [markdown]
# What stands behind an alarm: the evidence of its last event, and its scores before debouncing.

# %%
alarms[0].evidence

# %%
scores = wk.scores(flights)
first = "~".join(alarms[0].subjects)
scores.filter((pl.col("kind") == alarms[0].kind) & (pl.col("subject") == first)).head()

# %% [markdown]
# Another configuration: the profile that alarms sooner. Which alarms came how much earlier?

# %%
sooner = wk.watch(flights, config=wk.config(profile="high-sensitivity"))
both = alarms.to_frame().join(sooner.to_frame(), on=["kind", "subjects"], suffix="_sooner")
both.select("kind", "subjects", (pl.col("t_raised") - pl.col("t_raised_sooner")).alias("earlier"))

# %% [markdown]
# Were the conflict alarms true, and in time? The recording's own future is the truth.

# %%
result = wk.evaluate.alarms(wk.simulate("head-on", seed=1, seconds=300))
result.to_frame("polars")

# %%
result.figures.losses, result.figures.foreseen, result.figures.warning_median_s
