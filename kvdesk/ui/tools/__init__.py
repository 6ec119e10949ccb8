"""Tools in the window: servers in the settings, consent, the choice of a chat. Calls are among `kvdesk.ui.messages`."""
