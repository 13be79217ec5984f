"""The forms in which a webhook posts: envelopes and signatures of public standards."""
