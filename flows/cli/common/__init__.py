"""What the commands share: options, output, running a flow."""
