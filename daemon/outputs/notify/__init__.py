"""Messages to people, through Apprise: when one is sent, what it says, and how it gets there."""
