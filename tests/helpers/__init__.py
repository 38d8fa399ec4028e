"""What tests share: small problems, environments, and ways to run commands."""
