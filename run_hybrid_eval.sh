#!/bin/sh
# The GPS/IMU evaluation in one command, under the name that the evaluation protocol gives it: `make reproduce`.
# Writes configs/splits.json, attacks/catalog.json, results/metrics.json and results/report. Arguments go to
# `watchkeeper evaluate protocol`: ./run_hybrid_eval.sh --flights recordings
set -eu
cd "$(dirname "$0")"
exec make --no-print-directory reproduce ARGS="$*"
