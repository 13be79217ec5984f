"""clock: senders whose time is off."""
