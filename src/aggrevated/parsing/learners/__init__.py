"""Policies that read pages: networks, and a kernel machine with its update."""
