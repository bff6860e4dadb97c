"""The concurrent program as text: edits on the user's own lines, and a prologue of wholly new ones."""
