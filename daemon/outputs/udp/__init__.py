"""Ways out that go by datagrams have this in common."""
