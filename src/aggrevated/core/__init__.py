"""What every part needs: settings, registry, random streams, spaces, statistics."""
