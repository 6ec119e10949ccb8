"""The loop that runs a back end, and its subscribers. No Qt: a QThread runs it in the application."""
