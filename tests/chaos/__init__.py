"""A seeded simulation of broker, clock, disk and network around the whole daemon: `make chaos`, docs/chaos.md.

world.py      one seed: a scene, a plan of faults, the daemon, and what somebody at the broker heard
timeline.py   virtual time, and asyncio event loops that run on it
broker.py     a model MQTT broker; network.py the lines to it, senders.py those who publish telemetry
disk.py       a model file system under the state directory
interpose.py  puts clock, threads, disk and connection of the model in place of the real ones
verdict.py    what must hold at the end; oracle.py what an undisturbed run says
calm.py       what must hold meanwhile; census.py which samples were judged
planted.py    bugs that must be found
"""
