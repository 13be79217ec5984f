"""What `check-config` asks of the machine besides the file: packages, files and folders; with `--connect` addresses."""
