"""The documentation as a site: `make site` builds it offline, strictly, and looks at every page in a browser."""
