"""A real Prometheus scrapes a real daemon that watches the demo: every panel and every rule has something to say.

The daemon is a process, its broker a real one; the demo's scenario is published in real time, one message per sample,
and a receiver beside the broker speaks SBS. What the demo has no cause for (a jammer, a controller, an emergency) is
shown by pages of metrics, taken while a pipeline plays each detector's own scenario. Evaluations are small but real.
Takes two minutes.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest

from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.demo.broker import EmbeddedBroker, free_port
from watchkeeper.daemon.http.pipeline_metrics import pipeline_metrics
from watchkeeper.daemon.replay import publish as feed
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.logs.pacing import Pacer, SystemClock
from watchkeeper.streams.simulate import simulate

# Long enough for a conflict to be raised and to end, as `watchkeeper demo --seconds 60` proves.
SECONDS = 60.0
CLI = (sys.executable, "-m", "watchkeeper.daemon.cli")
SBS = "MSG,3,1,1,4CA7B3,1,,,,,,36000,,,51.45735,-1.02826,,,0,0,0,0\r\n"


def watchkeeper(folder: Path, *words: str) -> None:
    subprocess.run([*CLI, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def evaluations(tmp_path: Path) -> Iterator[int]:
    """A page with the figures of one small evaluation of each kind, as node_exporter would show them; its port."""
    work, page = tmp_path / "work", tmp_path / "page"
    (work / "flights").mkdir(parents=True)
    page.mkdir()
    watchkeeper(work, "simulate", "random", "--vehicles", "60", "--seconds", "400", "--out", "traffic.wklog")
    watchkeeper(work, "evaluate", "alarms", "traffic.wklog", "--out", "alarms.json")
    watchkeeper(work, "simulate", "controlled", "--out", "controlled.wklog")
    watchkeeper(work, "evaluate", "conflicts", "controlled.wklog", "--out", "controller.json")
    watchkeeper(work, "evaluate", "diagnosis", "--episodes", "3", "--out", "diagnosis.json")
    for seed in ("1", "2"):
        path = f"flights/{seed}.wklog"
        watchkeeper(work, "simulate", "drones", "--vehicles", "1", "--seconds", "130", "--seed", seed, "--out", path)
    few = ("--attacks", "gps_bias_100m,imu_stuck", "--repeats", "1", "--no-search")
    watchkeeper(work, "evaluate", "protocol", "--flights", "flights", *few, "--out", "protocol.json")
    results = ("alarms.json", "controller.json", "diagnosis.json", "protocol.json")
    watchkeeper(work, "evaluate", "textfile", *results, "--out", str(page / "metrics"))

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(page)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


class Shown:
    """A pipeline's metrics, as the daemon shows them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def collect(self) -> Iterator[Metric]:
        return pipeline_metrics(self.pipeline, tuple)


def scenes(page: Path) -> list[str]:
    """For each kind of alarm a page of metrics: the last moment of its detector's scenario in which it had a score."""
    found: dict[str, bytes] = {}
    for detector in REGISTRY.values():
        pipeline, registry = Pipeline(DEFAULT), CollectorRegistry()
        registry.register(Shown(pipeline))
        for batch in detector.declaration.scenario.batches():
            pipeline.feed(batch)
            gauges = pipeline.gauges()
            kinds = [
                k.name for k in detector.declaration.kinds if math.isfinite(gauges.get(f"{k.name}_score_p50", math.nan))
            ]
            found |= dict.fromkeys(kinds, generate_latest(registry) if kinds else b"")
    for kind, text in found.items():
        (page / kind).mkdir()
        (page / kind / "metrics").write_bytes(text)
    return list(found)


def prometheus_config(folder: Path, daemon: int, node: int, kinds: list[str], rules: list[Path]) -> Path:
    path = folder / "prometheus.yml"
    jobs = {"watchkeeper": daemon, "node": node}
    played = [
        {
            "job_name": f"scene-{kind}",
            "metrics_path": f"/{kind}/metrics",
            "static_configs": [{"targets": [f"127.0.0.1:{node}"], "labels": {"instance": f"scene-{kind}"}}],
        }
        for kind in kinds
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": list(map(str, rules)),
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for job, port in jobs.items()
        ]
        + played,
    }
    path.write_text(json.dumps(config))
    return path


async def demo(folder: Path, daemon_port: int, run: Callable[..., Any], answer: Callable[..., Any]) -> None:
    """The demo's minute behind a real broker, with a receiver beside it."""

    async def receiver(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError, ConnectionError):
            while not writer.is_closing():
                writer.write(SBS.encode())
                await writer.drain()
                await asyncio.sleep(0.5)

    async def taker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(receiver, "127.0.0.1", 0)
    hook = await asyncio.start_server(taker, "127.0.0.1", 0)
    sbs_port, hook_port = (s.sockets[0].getsockname()[1] for s in (server, hook))
    async with EmbeddedBroker() as broker:
        settings = folder / "watchkeeper.toml"
        settings.write_text(
            f"[[sources]]\ntype = 'sbs'\nurl = 'tcp://127.0.0.1:{sbs_port}'\n"
            f"[[webhooks]]\nname = 'taker'\nurl = 'http://127.0.0.1:{hook_port}/'\n"
            f"[broker]\nurl = '{broker.url}'\n[sinks]\nstate_dir = '{folder / 'state'}'\nterminal = false\n"
            f"[http]\nport = {daemon_port}\n"
        )
        with (folder / "daemon.log").open("w") as log:
            run(*CLI, "run", "-c", str(settings), stderr=log)
        ready = f"http://127.0.0.1:{daemon_port}/readyz"
        await asyncio.to_thread(answer, ready, within_s=240.0)
        scenario = simulate("demo", seed=0, seconds=SECONDS, t0=time.time())
        pacer = Pacer(1.0, SystemClock(), max_gap_s=60.0)
        await feed.publish(scenario.batches(), load(settings, env={}), broker.url, pacer, by_sample=True)
        await asyncio.sleep(3)
    server.close()
    hook.close()


@pytest.mark.long
def test_every_panel_and_every_rule_has_data(
    panels: list[tuple[str, str, str]], deploy: Path, tool: Callable[[str, str], str], tmp_path: Path,
    run: Callable[..., Any], answer: Callable[..., Any], evaluations: int,
) -> None:  # fmt: skip
    program = tool("prometheus", "prometheus")
    daemon_port, port = free_port(), free_port()
    rule_files = [deploy / "prometheus" / name for name in ("rules.yml", "traffic.yml")]
    kinds = scenes(tmp_path / "page")
    config = prometheus_config(tmp_path, daemon_port, evaluations, kinds, rule_files)
    api = f"http://127.0.0.1:{port}/api/v1"
    with (tmp_path / "prometheus.log").open("w") as log:
        run(
            program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}", stderr=log,
        )  # fmt: skip
    answer(f"http://127.0.0.1:{port}/-/ready")
    began = time.time()
    asyncio.run(demo(tmp_path, daemon_port, run, answer))

    def series(expr: str) -> list[list[float]]:
        asked = urlencode({"query": expr, "start": began, "end": time.time(), "step": 1})
        result = answer(f"{api}/query_range?{asked}")
        return [[float(value) for _, value in row["values"]] for row in result["data"]["result"]]

    def has_data(expr: str) -> bool:
        return any(math.isfinite(value) for values in series(expr) for value in values)

    def live(expr: str) -> str:
        return expr.replace('instance=~".+"', 'instance!~"scene-.*"')

    empty = [
        f"{board}, {title}: {expr}"
        for board, title, expr in panels
        if not has_data(live(expr)) and not (board == "detectors" and has_data(expr))
    ]
    assert not empty, "no data for\n" + "\n".join(empty)
    groups = answer(f"{api}/rules")["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
    # an alert that does not fire has no data: without its last comparison it has
    left = {rule["name"]: rule["query"].rpartition(" > ")[0] or rule["query"].rpartition(" == ")[0] for rule in rules}
    assert [name for name, expr in left.items() if not has_data(expr)] == []
    taken = series('max(watchkeeper_sink_delivered_total{sink="taker"})')
    assert taken[0][-1] > 0
    raised = series('max(watchkeeper_alarm_events_total{kind="conflict", state="raised"})')
    assert raised[0][-1] > 0
    assert has_data('ALERTS{alertname="SensorsContradict"}'), "a drone was spoofed, and Prometheus knows"
