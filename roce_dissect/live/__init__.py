"""Watching an interface: the loop that keeps packets flowing, and the screen."""
